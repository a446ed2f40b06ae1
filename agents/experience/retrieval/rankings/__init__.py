"""Kinds of retrieval: each file ranks texts by how much they resemble a query."""
