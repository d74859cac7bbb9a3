"""What Django's models cannot say: the NOTIFY on insert, and foreign keys that act in the database."""

from django.db import migrations

from jobs.migrations._foreign_keys import on_delete

# One notification a statement and queue, however many rows it inserts.
NOTIFY_ON_INSERT = """
CREATE FUNCTION job_queue_notify() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('pgbr_jobs', queue) FROM (SELECT DISTINCT queue FROM inserted WHERE status = 'pending') AS q;
    RETURN NULL;
END
$$;
CREATE TRIGGER job_queue_notify AFTER INSERT ON job_queue
    REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION job_queue_notify();
"""
NO_NOTIFY = "DROP TRIGGER job_queue_notify ON job_queue; DROP FUNCTION job_queue_notify();"


class Migration(migrations.Migration):
    dependencies = [("jobs", "0002_constraints_and_indexes")]

    operations = [
        migrations.RunSQL(NOTIFY_ON_INSERT, NO_NOTIFY),
        on_delete("backup_jobs", "database_id", "databases", "SET NULL"),
        on_delete("restore_jobs", "database_id", "databases", "SET NULL"),
        on_delete("migration_jobs", "source_database_id", "databases", "SET NULL"),
        on_delete("migration_jobs", "target_database_id", "databases", "SET NULL"),
    ]
