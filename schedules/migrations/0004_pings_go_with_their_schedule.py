"""A deleted schedule takes its pings with it, however it is deleted."""

from django.db import migrations

from jobs.migrations._foreign_keys import on_delete


class Migration(migrations.Migration):
    dependencies = [("schedules", "0003_retention_and_pings")]

    operations = [on_delete("backup_schedule_pings", "schedule_id", "backup_schedules", "CASCADE")]
