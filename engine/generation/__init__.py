"""From a prompt to streamed text: chat template, sampling, detokenization, stopping, and the token loop."""
