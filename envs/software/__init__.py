"""Software tasks: find and fix a fault in a real library, in a container."""
