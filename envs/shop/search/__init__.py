"""Full-text search with Lucene's analysis and BM25, in memory or on disk."""
