"""Tests of distillation: rules on a real endpoint, a scripted model for the words."""
