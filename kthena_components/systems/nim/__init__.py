"""Kinds of NVIDIA's NIM operator."""
