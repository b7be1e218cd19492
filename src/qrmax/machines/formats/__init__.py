"""Task file formats, one module each; `qrmax.machines.task_files` picks by suffix.

Each module has `parse(source)`, and `format(machine)` if the format can be written. Input is never
executed as code.
"""
