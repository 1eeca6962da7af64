"""LLM-as-a-judge: asks a language model about a conversation and evaluates its answers."""
