"""Reads session files without any compiled code: docs/trace-format.md and docs/byte-rules.md of
tensor-trace, in Python. The tests compare it with the SQLite extension of tensor-trace."""
