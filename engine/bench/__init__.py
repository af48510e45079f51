"""Benchmarks for `fiddler bench`: how close this machine's kernels come to what its memory allows."""
