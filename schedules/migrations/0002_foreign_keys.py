"""A deleted database takes its schedules with it, however it is deleted."""

from django.db import migrations

from jobs.migrations._foreign_keys import on_delete


class Migration(migrations.Migration):
    dependencies = [("schedules", "0001_tables"), ("jobs", "0003_triggers_and_foreign_keys")]

    operations = [
        on_delete("backup_schedules", "database_id", "databases", "CASCADE"),
        on_delete("backup_schedule_storages", "schedule_id", "backup_schedules", "CASCADE"),
        on_delete("backup_schedule_skips", "schedule_id", "backup_schedules", "CASCADE"),
    ]
