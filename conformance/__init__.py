"""Conformance suite generator: quantised TFLite models, made without TensorFlow."""
