"""Tests of the generator: python -m unittest discover -t . -s conformance/tests"""
