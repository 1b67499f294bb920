"""The cache on disk and in memory: embeddings, dictionary indexes, feature rows and file hashes."""
