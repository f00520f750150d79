"""What commands say of themselves with --help."""

from __future__ import annotations

EXIT_CODES = """
[b]Exit codes[/b]: 0 done; 2 bad usage or bad data, one line says what;
1 a failure of ours; 130 interrupted. No failure leaves a file behind.
"""

JOIN_HELP = (
    "Join two files of events by the probability of a timing condition.\n\n"
    "[cyan]coincide join a.parquet b.parquet -o pairs --within -250ms 250ms --confidence 0.5[/cyan]\n\n"
    "Inputs are Parquet, CSV, or Arrow IPC. Each needs an id and the two ends of its timestamps;"
    " --left-time, --left-columns and so on name these columns. A column of CSV holds numbers if all of"
    " them print as they were written. Else, as with 007 or 1e3, it is text or a time. Spark reads"
    " Parquet only. With one input its events are joined with themselves: each with every other one, each"
    " pair once."
)
JOIN_EXAMPLES = """
[b]Examples[/b]

Picks of two seismic detectors at the same station, more likely than not
within 250 ms of each other:

    [cyan]coincide join stalta.parquet phasenet.parquet -o pairs \\
      --by station,phase --within -250ms 250ms --confidence 0.5[/cyan]

Orders without a parcel that was, with 90 % probability, packed within two
days; from CSV:

    [cyan]coincide join orders.csv parcels.csv -o late.parquet --how anti \\
      --by order --left-time placed --right-time seen_first,seen_last \\
      --within -6h 48h --confidence 0.9[/cyan]

Where keys tie answers to what they answer, begin the window below 0: an
answer may be stamped before it, as clocks may be off.

Which request each log line answers, of CSV with semicolons and clocks that
are off by up to 10 ms; to the screen:

    [cyan]coincide join requests.csv answers.csv -o - --csv-delimiter ';' \\
      --by session --left-time at --left-around 10ms --right-time at \\
      --right-around 10ms --within 0s 2s --confidence 0.5 | head[/cyan]

How many alarms follow each reading; times are integers in milliseconds:

    [cyan]coincide join 'readings/*.parquet' alarms.arrow -o counts \\
      --unit ms --within 0s 30s --confidence 0.8 --emit counts[/cyan]

The first S pick after each P pick, not the most probable one, which would
be near the middle of the window:

    [cyan]coincide join p.parquet s.parquet -o pairs --by station \\
      --within 0s 30s --confidence 0.5 --emit best --prefer first[/cyan]
"""
STREAM_HELP = (
    "Join two streams without an end on Spark, until you stop it.\n\n"
    "[cyan]coincide stream kafka://HOST:9092/a kafka://HOST:9092/b -o pairs --checkpoint kept"
    " --left-schema 'id BIGINT, time TIMESTAMP' --right-schema 'id BIGINT, time TIMESTAMP' --left-time time"
    " --right-time time --within 0s 2s --left-delay 5s[/cyan]\n\n"
    "LEFT and RIGHT are topics of Kafka, or folders into which Parquet files come. A pair comes out when no"
    " event can change it any more: when both sides have passed it by their delays. So all rows together"
    " are those that [b]coincide join[/b] finds of all events that are not late.\n\n"
    "Ctrl-C, SIGTERM or SIGHUP ends the run. The same command goes on from the checkpoint. Rows in a folder"
    " are there once. Records in a topic may be there twice after a run was stopped or killed. Topics need"
    " Spark's package for Kafka: a message says which."
)
STREAM_EXAMPLES = """
[b]Examples[/b]

Requests that no answer followed within 2 s, from topics to a topic. Clocks
are off by up to 10 ms, so a fast answer may be stamped up to 20 ms before its
request: the window begins below 0. Events come up to 5 s late:

    [cyan]coincide stream kafka://localhost:9092/requests \\
      kafka://localhost:9092/answers -o kafka://localhost:9092/missed \\
      --left-schema 'id BIGINT, session STRING, at TIMESTAMP' \\
      --right-schema 'id BIGINT, session STRING, at TIMESTAMP' \\
      --by session --left-time at --left-around 10ms --right-time at \\
      --right-around 10ms --within -40ms 2s --confidence 0.5 --how anti \\
      --left-delay 5s --checkpoint /var/lib/missed[/cyan]

All files that are in two folders now, and then no more:

    [cyan]coincide stream readings alarms -o pairs --checkpoint kept --once \\
      --within 0s 30s --confidence 0.8 --left-delay 1min[/cyan]
"""
EXPLORE_HELP = (
    "Choose a confidence: make a page that shows what a join finds at each.\n\n"
    "[cyan]coincide explore a.parquet b.parquet --within -250ms 250ms[/cyan]\n\n"
    "The page shows all pairs that could qualify: how probable they are, how many qualify at each"
    " confidence, how many matches events have, and how their delays change with the time of day. The"
    " page needs no network and no other file.\n\n"
    "It takes the inputs of [b]coincide join[/b], but needs no ids. It runs in one process, whose memory"
    " must hold times and keys of both inputs. With more than --most-pairs pairs, it takes a random sample"
    " of the events of LEFT, and says so."
)
EXPLORE_EXAMPLES = """
[b]Examples[/b]

Picks of two seismic detectors, and how many pairs chance alone makes:

    [cyan]coincide explore stalta.parquet phasenet.parquet \\
      --by station,phase --within -250ms 250ms --shifts 30s,-30s,47s,-47s[/cyan]

From clocks of ± 10 ms:

    [cyan]coincide explore a.csv b.csv -o page.html --within 0s 1s \\
      --left-time t --left-around 10ms --right-time t --right-around 10ms[/cyan]
"""
HISTOGRAM_HELP = (
    "Count pairs by their delay, T_right − T_left: a histogram, or correlogram.\n\n"
    "[cyan]coincide histogram a.parquet b.parquet -o delays.csv --within -1s 1s --left-time t"
    " --right-time t[/cyan]\n\n"
    "OUT has a row for each bucket: where it begins and ends, and how many pairs have such a delay. Where"
    " times are uncertain it also has how many are expected: each pair is spread over the buckets that it"
    " may be in. The summary shows the histogram as text, and --page draws it.\n\n"
    "It takes the inputs of [b]coincide join[/b], but needs no ids, and makes no pairs: time grows with the"
    " events. Without RIGHT each event of LEFT meets every other one, before and after it. It runs in one"
    " process."
)
HISTOGRAM_EXAMPLES = """
[b]Examples[/b]

How long after each request answers come, of each server, next to what
chance gives:

    [cyan]coincide histogram requests.csv answers.csv -o delays.csv \\
      --left-time at --right-time at --unit ms --by server \\
      --within 0s 2s --bins 200 --chance 60s,-60s --page delays.html[/cyan]

Buckets that grow, of clocks of ± 2 ms:

    [cyan]coincide histogram a.parquet b.parquet -o delays.parquet \\
      --left-time t --left-around 2ms --right-time t --right-around 2ms \\
      --edges 0s,1ms,3ms,10ms,30ms,100ms,300ms,1s[/cyan]

Gaps between the spikes of one neuron:

    [cyan]coincide histogram spikes.csv -o gaps.csv --unit s --tick us \\
      --left-time t --within 0s 100ms --bins 100 --chance rates[/cyan]
"""
SEQUENCE_HELP = (
    "Find sequences of events of several files: a window for each step from one to the next.\n\n"
    "[cyan]coincide sequence clicks.parquet carts.parquet pays.parquet -o found.parquet --within 0s 10min"
    " --within 0s 5min --confidence 0.9[/cyan]\n\n"
    "OUT has a row for each sequence whose windows [b]all[/b] hold with this probability. It is that of the"
    " whole, not the product of its steps, which share events. --total bounds the time from the first event"
    " to the last. The summary says how many links each step has, and how many tuples they make.\n\n"
    "Inputs are Parquet, CSV, or Arrow IPC, in the order of the steps. Each needs an id, or has the numbers"
    " of its rows, and the two ends of its timestamps, or one column of exact times. Options of an input"
    " hold for all, or with NAME= for one. Inputs are called a, b, c, …, or what --names says. A file may"
    " be several inputs: no event is in a sequence twice. All runs in one process."
)
SEQUENCE_EXAMPLES = """
[b]Examples[/b]

Who put in the cart what they had looked at, and paid, all in half an hour;
the exact times of pay.csv are in another column:

    [cyan]coincide sequence click.csv cart.csv pay.csv -o sales.parquet \\
      --names click,cart,pay --time at --time pay=paid_at --by user \\
      --within 0s 10min --within 0s 25min --total 0s 30min[/cyan]

The same key under another name in one of the inputs; clocks of ± 20 ms, but
of pay ± 1 s; the most probable sequence of each click:

    [cyan]coincide sequence click.csv cart.csv pay.csv -o best.parquet \\
      --names click,cart,pay --time at --around 20ms --around pay=1s \\
      --by user=uid=user --within 0s 10min --within 0s 25min \\
      --confidence 0.5 --emit best --probability[/cyan]

Clicks that led to no payment:

    [cyan]coincide sequence click.csv cart.csv pay.csv -o lost.csv --time at \\
      --by user --within 0s 10min --within 0s 25min --how anti[/cyan]

Three failed logins of one account in a minute, in one file:

    [cyan]coincide sequence failed.parquet failed.parquet failed.parquet \\
      -o alarms.parquet --time at --by account --within 0s 60s \\
      --within 0s 60s --total 0s 60s[/cyan]
"""
COINCIDENCE_HELP = (
    "Find sets of events of several files, in any order, that are all within a width of each other.\n\n"
    "[cyan]coincide coincidence north.parquet east.parquet south.parquet -o found.parquet --within 50ms"
    " --confidence 0.9 --at-least 2[/cyan]\n\n"
    "OUT has a row for each set. A set has one event of each input, or of at least as many inputs as"
    " --at-least says. The probability that [b]all[/b] of its events are so close reaches --confidence."
    " Where an input has no event in it, its columns are empty; the column streams says how many have one."
    " A set that is part of a larger one is not told again.\n\n"
    "Inputs are Parquet, CSV, or Arrow IPC. Each needs an id, or has the numbers of its rows, and the two"
    " ends of its timestamps, or one column of exact times. Options of an input hold for all, or with NAME="
    " for one. Inputs are called a, b, c, …, or what --names says. For events in order use [b]coincide"
    " sequence[/b]. All runs in one process."
)
COINCIDENCE_EXAMPLES = """
[b]Examples[/b]

Hits in two or more of four detectors within 50 ns, whose clocks tick
every 4 ns:

    [cyan]coincide coincidence a.parquet b.parquet c.parquet d.parquet \\
      -o hits.parquet --time t --resolution 4ns --unit ns --within 50ns \\
      --at-least 2 --confidence 0.5 --probability[/cyan]

Alarms of three systems at one site within a second, from CSV with
semicolons, to the screen; the clock of pump is off by up to 200 ms:

    [cyan]coincide coincidence door.csv pump.csv fire.csv -o - \\
      --names door,pump,fire --csv-delimiter ';' --by site --time at \\
      --around 0s --around pump=200ms --within 1s --confidence 0.9[/cyan]
"""
BORDERS_HELP = (
    "Find when streams of readings cross the borders of queries.\n\n"
    "[cyan]coincide borders sensors.parquet limits.csv -o crossings[/cyan]\n\n"
    "A query is a range in each of its dimensions: lower ≤ value < upper, or with --closed both lower ≤"
    " value ≤ upper. A stream enters it (event I) if one reading lies in it and the one before does not."
    " It leaves it (O) the other way round. The crossing lies somewhere between the times of the two"
    " readings, min_time and max_time. So the answer is events with interval timestamps, for"
    " [b]coincide join[/b].\n\n"
    "Inputs are Parquet, CSV, or Arrow IPC. READINGS need the columns stream_id, time and value, QUERIES"
    " need query_id, lower and upper; --stream, --time, --values and --query name other ones. For --values"
    " x,y the borders are lower_x, upper_x, lower_y and upper_y. A range without a border on one side is"
    " open there. A reading without a value is a gap: the stream is taken to be where it was. The last row"
    " of a stream at one time counts, and on Spark that with the least values."
)
BORDERS_EXAMPLES = """
[b]Examples[/b]

When machines became too hot, or cold, and when that was over:

    [cyan]coincide borders sensors.parquet limits.csv -o crossings \\
      --stream machine --values temperature[/cyan]

Ships that come into areas of the sea, or leave them by more than 0.01
degrees:

    [cyan]coincide borders 'ais/*.parquet' areas.parquet -o visits.parquet \\
      --stream mmsi --time seen --values lon,lat --query area \\
      --hysteresis 0.01 --first outside[/cyan]
"""
TRANSITIONS_HELP = (
    "Find out how long streams stayed inside regions, and outside.\n\n"
    "[cyan]coincide transitions crossings -o parked --within 3min --confidence 0.9[/cyan]\n\n"
    "EVENTS say when a stream came into a region (I) or left it (O), as [b]coincide borders[/b] finds them."
    " An event and the next one of its query and stream are a transition, I>O or O>I, if the time between"
    " them is at most --within. If not, the first one begins a stay, I>!O or O>!I, which came true when"
    " that time had passed. Timestamps are intervals, so the time between two of them is uncertain: the"
    " output has a row if its probability reaches --confidence. A row says when it ended, and how long it"
    " lasted at least and at most.\n\n"
    "Inputs are Parquet, CSV, or Arrow IPC, with the columns query_id, stream_id, event and the two ends of"
    " the timestamps, min_time and max_time; --query, --stream, --event and --time name other ones."
)
TRANSITIONS_EXAMPLES = """
[b]Examples[/b]

Cars that left the garage within three minutes, and those that stayed:

    [cyan]coincide transitions crossings -o parked --within 3min \\
      --confidence 0.9[/cyan]

The same for exact times, in one file; what is not in it by
noon had not happened by then:

    [cyan]coincide transitions log.csv -o parked.parquet --within 3min \\
      --time at --until 2024-05-01T12:00:00Z[/cyan]
"""
CAUSALITY_HELP = (
    "Find which events can have caused which.\n\n"
    "[cyan]coincide causality switched.csv alarms.csv -o pairs --delta 0s 5s[/cyan]\n\n"
    "The output has each pair of a cause and an effect that meets all conditions: --delta on their times,"
    " --radius on their distance, and others on both. With --speed the effect comes when something that"
    " travels from the cause at such a speed arrives: distance/MAX − slack ≤ T_effect − T_cause ≤"
    " distance/MIN + slack. Bounds are inclusive. Each pair has its distance and delta, whose name says"
    " what it counts: delta_us.\n\n"
    "Inputs are Parquet, CSV, or Arrow IPC. Each needs an id and a time, and a place if distances count;"
    " --cause-time, --cause-place and so on name these columns. A row without a place matches nothing and"
    " is counted. With one input, an event is the cause of later ones."
)
CAUSALITY_EXAMPLES = """
[b]Examples[/b]

Which picks of seismic stations can be the P wave of which earthquake; the
depth of stations is 0:

    [cyan]coincide causality events.parquet picks.parquet -o pairs \\
      --cause-place lat,lon,depth_km --effect-place lat,lon,0 --lat-lon \\
      --radius 80 --speed 4.5 7.0 --slack 500ms[/cyan]

How many alarms a switching can have set off within 5 s, in the same
building; from CSV:

    [cyan]coincide causality switched.csv alarms.csv -o counts.parquet \\
      --by building --delta 0s 5s --emit counts[/cyan]

Lightning sources of one stream that belong together:

    [cyan]coincide causality sources.parquet -o links --unit s \\
      --cause-place x,y,z --ellipsoid 3000 150ms[/cyan]
"""
CLUSTERS_HELP = (
    "Find which events belong together: those that a chain of pairs connects.\n\n"
    "[cyan]coincide clusters sources.parquet -o flashes.parquet --delta 0s 150ms[/cyan]\n\n"
    "A pair of two events counts if it meets all conditions, like in [b]coincide causality[/b]: --delta on"
    " its times, --radius on its distance, --speed and --ellipsoid on both. The output has a row for each"
    " event, with its columns and the label of its cluster: the first row of the cluster, counted from 0."
    " An event without time, place or key has no label.\n\n"
    "Inputs are Parquet, CSV, or Arrow IPC, and are read into the memory of this process; Java is not"
    " needed. Several files are one input, in order of their names."
)
CLUSTERS_EXAMPLES = """
[b]Examples[/b]

Lightning sources of a flash are within 3 km and 150 ms of another one:

    [cyan]coincide clusters sources.parquet -o flashes.parquet --unit s \\
      --place x,y --delta 0s 150ms --radius 3[/cyan]

Earthquakes within 5 km and a day of each other, of latitudes and
longitudes:

    [cyan]coincide clusters quakes.csv -o swarms.csv --place lat,lon \\
      --lat-lon --delta 0s 24h --radius 5km --columns '*'[/cyan]
"""
CLOCKS_HELP = (
    "Find how far the clocks of one input are off those of another, from their events alone.\n\n"
    "[cyan]coincide clocks recorder.parquet server.parquet -o errors.parquet --max-offset 60s[/cyan]\n\n"
    "Some events of both inputs must have common causes. The output has a row for each key and segment of"
    " time. Its status is found, ambiguous, not found, or too few. [b]The offset is right - left: add it"
    " to left times.[/b] It grows by the drift, in ppm, from the start of the segment on. A clock that was"
    " set in between has several segments.\n\n"
    "Inputs are Parquet, CSV, or Arrow IPC, and are read into the memory of this process; Java is not"
    " needed."
)
CLOCKS_EXAMPLES = """
[b]Examples[/b]

The error of each recording's clock, within a minute and 200 ppm:

    [cyan]coincide clocks band.csv ecg.csv -o errors.parquet --unit s \\
      --by recording --max-offset 60s[/cyan]

Only messages of one kind can be the same:

    [cyan]coincide clocks car.parquet road.parquet -o errors.csv \\
      --match kind --max-offset 5s[/cyan]
"""
DEMO_HELP = (
    "Make a sample of badge readers and door sensors, join it, and say what was found.\n\n"
    "The sample knows when everything really happened, the join does not. So the answer can be"
    " marked: right pairs found and wrong ones let in, compared with a plain join on the middles of the"
    " timestamps."
)
DOCTOR_HELP = (
    "Say what is installed: Java, Spark, Python, GPU, backends; and what to do about what is"
    " missing.\n\n"
    "Exit code 0 if joins run on the CPU, on Spark and in one process; 1 if not. With --gpu: 0 if they"
    " run on the GPU and give the CPU's answers. With --warm: 0 if the compiled code is kept."
)
