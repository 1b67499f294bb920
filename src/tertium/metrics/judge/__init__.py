"""LLM judges: a language model behind an OpenAI-compatible server scores translations."""
