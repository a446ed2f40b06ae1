"""Question answering by searching a corpus."""
