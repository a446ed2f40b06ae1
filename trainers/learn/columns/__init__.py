"""Suppliers of columns, one a file; every module here is found without being listed anywhere."""
