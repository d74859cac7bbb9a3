"""Foreign keys with an action of their own, for rows that are deleted in plain SQL too."""

from django.db.migrations import RunSQL

REPLACE = """
DO $$
DECLARE
    found text;
BEGIN
    SELECT conname INTO STRICT found
    FROM pg_constraint
    JOIN pg_attribute ON attrelid = conrelid AND attnum = conkey[1]
    WHERE contype = 'f' AND conrelid = '{table}'::regclass AND attname = '{column}';
    EXECUTE format('ALTER TABLE {table} DROP CONSTRAINT %I', found);
    EXECUTE format(
        'ALTER TABLE {table} ADD CONSTRAINT %I FOREIGN KEY ({column}) REFERENCES {target} (id) '
        '{action} DEFERRABLE INITIALLY DEFERRED', found);
END
$$
"""


def on_delete(table: str, column: str, target: str, action: str) -> RunSQL:
    """Give the foreign key `table`.`column` -> `target` the action "SET NULL" or "CASCADE"."""
    names = {"table": table, "column": column, "target": target}
    return RunSQL(
        REPLACE.format(**names, action=f"ON DELETE {action}"),
        REPLACE.format(**names, action=""),
    )
