"""The engines that come with manyturn: the options and the factory of each."""
