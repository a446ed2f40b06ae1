"""Methods of search: each file decides which replies are tried out, and which path is played."""
