"""Linguistic analysis of text: parsing, WordNet, word similarity and alignment."""
