"""Payloads that Python cannot read no longer take a page down: Django reads them as the queue does."""

import jobs.models.queue
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0005_unsettled'),
    ]

    operations = [
        migrations.AlterField(
            model_name='queuedjob',
            name='payload',
            field=models.JSONField(decoder=jobs.models.queue.Readable, default=dict, help_text='Ids and flags, never secrets.'),
        ),
    ]
