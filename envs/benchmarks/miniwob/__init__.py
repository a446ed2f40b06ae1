"""MiniWoB++: small web tasks, played from the files of the package miniwob."""
