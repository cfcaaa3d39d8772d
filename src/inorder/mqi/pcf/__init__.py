"""Programmable command formats: administration by messages."""
