"""Take over the experts of files that are quantised already: GGUF, AWQ and GPTQ, with every value kept."""
