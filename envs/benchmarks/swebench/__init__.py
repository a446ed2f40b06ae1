"""SWE-bench and the sets of its form: a user's rows, their images, an episode in a container, and grades."""
