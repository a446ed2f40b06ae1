"""The engines that come along: the options and the factory of each."""
