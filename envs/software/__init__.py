"""Software tasks: find and mend a fault in a real library, in a container."""
