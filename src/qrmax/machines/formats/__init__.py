"""The formats in which tasks are kept, one file each; `qrmax.machines.task_files` picks by suffix.

Each module has `parse(source)`, and `format(machine)` where the format can be written. Nothing that
is read is ever run as code.
"""
