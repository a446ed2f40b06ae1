"""The models that come along: the options and the builder of each."""
