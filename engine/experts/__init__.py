"""Where the experts' weights live: the host's arena of packed blocks, and the places on the GPU."""
