"""Anybody's messages and our steps, one made of the other. Pure: whoever has read the bytes hands them in."""
