-- More tables of the schema: definitions other than queues, and the progress of channels.

CREATE TABLE object (
    type text COLLATE "C" NOT NULL CHECK (type <> ''),
    name text COLLATE "C" NOT NULL CHECK (name <> ''),
    attributes text COLLATE "C" NOT NULL CHECK (attributes::json IS NOT NULL),
    altered_at double precision NOT NULL,
    PRIMARY KEY (type, name)
);

CREATE TABLE channel (
    name text COLLATE "C" PRIMARY KEY,
    status text COLLATE "C" NOT NULL
        CHECK (status IN ('inactive', 'starting', 'running', 'retrying', 'paused', 'stopping', 'stopped', 'triggered',
            'waiting')),
    carrier bigint,
    epoch bigint NOT NULL CHECK (epoch >= 0),
    stop text COLLATE "C" NOT NULL CHECK (stop IN ('', 'quiesce', 'force', 'terminate')),
    short_retries bigint NOT NULL CHECK (short_retries >= 0),
    long_retries bigint NOT NULL CHECK (long_retries >= 0),
    reason bigint NOT NULL,
    error text COLLATE "C" NOT NULL,
    changed_at double precision NOT NULL,
    fast bigint NOT NULL DEFAULT 0 CHECK (fast IN (0, 1)),
    reset bigint NOT NULL DEFAULT 0 CHECK (reset IN (0, 1))
) WITH (fillfactor = 50);

CREATE TABLE sent (
    queue bigint NOT NULL,
    channel text COLLATE "C" NOT NULL,
    number bigint NOT NULL CHECK (number >= 0),
    messages bigint NOT NULL CHECK (messages >= 0),
    size bigint NOT NULL CHECK (size >= 0),
    sent_at double precision,
    PRIMARY KEY (queue, channel)
) WITH (fillfactor = 50);

CREATE TABLE received (
    identifier text COLLATE "C" NOT NULL CHECK (identifier <> ''),
    incarnation bigint NOT NULL,
    channel text COLLATE "C" NOT NULL,
    manager text COLLATE "C" NOT NULL,
    number bigint NOT NULL CHECK (number >= 0),
    epoch bigint NOT NULL CHECK (epoch >= 0),
    messages bigint NOT NULL CHECK (messages >= 0),
    digest bytea NOT NULL,
    received_at double precision NOT NULL,
    PRIMARY KEY (identifier, incarnation, channel)
) WITH (fillfactor = 50);

CREATE TABLE body (
    identifier text COLLATE "C" NOT NULL,
    incarnation bigint NOT NULL,
    channel text COLLATE "C" NOT NULL,
    position bigint NOT NULL CHECK (position >= 0),
    batch bytea NOT NULL,
    digest bytea NOT NULL,
    size bigint NOT NULL CHECK (size > 0),
    held bigint NOT NULL CHECK (held BETWEEN 0 AND size),
    PRIMARY KEY (identifier, incarnation, channel, position)
);

CREATE TABLE piece (
    identifier text COLLATE "C" NOT NULL,
    incarnation bigint NOT NULL,
    channel text COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    first bigint NOT NULL CHECK (first >= 0),
    data bytea NOT NULL,
    PRIMARY KEY (identifier, incarnation, channel, position, first)
);
