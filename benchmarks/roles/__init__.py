"""Several policies in one episode: partners, advisers and past selves."""
