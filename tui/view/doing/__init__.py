"""What the keys do, by topic: mixins of the app, a method ``action_<id>`` for each row of the table of actions."""
