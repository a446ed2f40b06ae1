"""Retrieval: the entries about single tasks that resemble the task at hand, by words or by embeddings."""
