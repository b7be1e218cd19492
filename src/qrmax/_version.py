"""The version, alone in a file so that the build and `import qrmax` agree on it."""

__version__ = "0.1.0"
