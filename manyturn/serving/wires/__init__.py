"""Wire protocols by which environments are served."""
