"""The models that come with manyturn: the options and the builder of each."""
