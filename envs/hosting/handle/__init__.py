"""One environment behind one interface, ours or a foreign one, and the messages that carry it between processes."""
