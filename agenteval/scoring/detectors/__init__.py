"""Detectors of failures that code can prove, their input, and consent for marked tools."""
