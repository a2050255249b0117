"""Every constant that decides how the search goes, by stage and operator, each with what it means and its unit.

Modules import from here; nothing here depends on a module. What a group was chosen by, and what to run before one of it is changed, stands
at its head; else the comment says it. Shares are 0 to 1, counts are positive. The constants of the potential stand in
`optimizer.problem`, those of an annealing (`FIND`, `RETURN`, `PACK`) in `repack`.
"""

from __future__ import annotations

# --- Rounds
# How long the search goes on. `python -m benchmarks.ablation --without restarts`.
ROUNDS_OF_BALANCE = 400  # at most, for one target
FEW_MOVES = 0.05  # of all replicas: one round finds more
MOST_ROUNDS = 200  # of one search
MOST_RESTARTED = 20_000  # replicas; beyond, there is one seed
VAIN_RESTARTS, VAIN_REPLICAS = 6, 4_000  # in a row, at most, where hard limits stay broken, and replicas that they look at together
MOST_ESCAPED = 200_000  # replicas; beyond, what escapes bring does not pay for the time
SEED_STEP = 1_000_003  # between the seeds of restarts
SEEDS = 2**40  # what a seed is multiplied with on the way must fit into int64
MANY_CHANGES = 50_000  # of one round: a state is freed before its record is made
POLISH_ROOM = 20_000  # changes in a log, beside one for each replica

# --- What may be published
LEAST_STEP = 1e-6  # by at least so much a step of `polish` lowers the potential, and by potential every action
ENDLESS = 2**62  # moves, where no budget limits them
UNIT_SHARE = 0.5  # of a move, byte or partition: a budget is enough for what exceeds it by less, since plans print whole numbers
CHOICE_OF_MOVES = 2.0  # moves to choose from, for each that the budget is enough for

# --- Construct and repair
# Judged on clusters that lose brokers or racks: `benchmarks.ledger`, scenario c and variants racks.
SAMPLED_TARGETS, MANY_TARGETS = 160, 12  # brokers looked at for one replica, and where very many are to be moved
MOST_MENDERS = 16  # brokers looked at for one replica of a crowded rack, where very many are crowded
MANY_TO_MOVE = 5_000  # replicas: with more, few brokers are looked at for each

# --- Brokers side by side
# How many are looked at together; depends on the cluster alone, so that the plan is the same on any machine.
MOST_STARS = 64  # stars in a batch at most ...
BROKERS_A_STAR = 150.0  # ... one for so many brokers, four times as many for twice as many ...
REPLICAS_A_STAR = 32.0  # ... and for as many replicas a broker
RANKED = 16  # partners that a broker looks for, of which others may have taken some
WIDEST = 8  # partners in a star
MOST_MOVED = 64  # replicas from one broker to another in a star
LEADERSHIPS = 16  # transfers a broker makes in a round

# --- Rounds of `balance`
# Judged by CPU time and moves from 50,000 replicas on: `benchmarks.planner`.
MOST_SWAPPED, FEW_LOW = 48, 32  # partners that a broker out of band tries to swap with, where there are no more such brokers
PATIENCE = 4  # rounds without success after which a broker is given up
LOOK_BACK = 16  # rounds, within which it has to get better ...
LEAST_FALL = 0.01  # ... by so much, or a broker has to come into band
MANY_LOW = 0.75  # of the brokers are out of band: all will be asked for their replicas
WORTH_SHARING, NEVER = 30_000, 1 << 62  # replicas, or pairs of brokers, to look at: some tenths of a millisecond

# --- Leadership transfers
LOOKED_AT = 64  # replicas that promise most, weighed before others
SLACK, LEAST_SLACK = 1e-6, 1e-12  # of bounds, for roundings

# --- Candidates of a broker
KEPT = 128  # candidates kept of a scan
LEAST_GAIN = 1e-8  # in potential, that a step on a target has to bring
HALVINGS = 8  # of the range of keys, before the few that are left are sorted
ANYWAY = 10.0  # beyond that of a replica of no bytes, at most 2: it costs no move either

# --- Hard limits that the last target leaves broken
FIRM_WEIGHT = 1e9  # of a hard limit then, against a soft goal: an excess of a ten thousandth weighs more than soft goals missed

# --- What a replica costs
# `python -m benchmarks.heavy_tails --seeds 60,61,62,63,64,65`; docs/benchmarks.md, what a move costs, and *Planner* where replicas lack.
COST_ADDED = 3.0  # mean costs, added to the cost that a gain is divided by: no replica goes because it is small and for nothing else
DUE_ADDED = 1.0  # mean sizes, the same where a broker lacks replicas, so that moves are needed anyway
LACKING = 0.5  # of what a broker lacks most of a load: it lacks replicas, if that is more

# --- Relocate
# `PATIENT`: with hard limits and equal costs, moves over the bound fell from 7 to 30 % to 0 to 3 % (`benchmarks.meta_rebalancer`).
PATIENT = 0.9  # of what the best move that may not be would gain for its bytes: what gains less waits

# --- Swaps
# `python -m benchmarks.ablation --without swap_out`, with few replicas a broker: `benchmarks.planner --per-broker 50 --bands 0.05`.
SWAP_KEPT = 32  # replicas of each of two brokers, those that do best alone on the other
SWAP_SAMPLE = 64  # replicas of the broker out of band, set against all of a partner
SWAP_PARTNERS = 24  # at random, for one swap
SWAP_ENOUGH = 0.1  # of what is out of band on the broker: a swap that brings so much is made without asking further partners
SWAP_SHARE = 5e-3  # of what is out of band on the broker, that a swap has to bring
SWAPS_OF_ONE = 8  # of a broker in one pass
SWAP_FALL = 0.05  # of all that is out of band, for another pass that brings no broker into it
SWAP_LOOKS_EACH = 1_000  # pairs of replicas, for each replica there is

# --- Topics
# `python -m benchmarks.ablation --without topics`, variants topics and everything.
OFFERED = 4  # replicas of a broker looked at for one that it gives
TOPIC_TARGETS = 10  # brokers looked at for one replica
DONORS, MOST_DONORS = 24, 400  # replicas looked at for one that a broker takes
LEAST_TOPIC_GAIN = 1e-9  # in potential
MOST_OFFERED, MOST_OFFERS = 16, 400  # replicas of a broker that are offered to all others; offers to one broker

# --- Destroy and repair
# `python -m benchmarks.gap` for small clusters; excluded topics of 100x10k for the last brokers.
PACKED_BROKERS = 0.25  # of the brokers; where more are out of band, and more than are packed together, they mostly have to be
VAIN_ATTEMPTS, LEAST_TRIES = 6, 2  # attempts without success in all, shared by the brokers that are out; for one broker
ANNEAL_EACH, ANNEAL_STEPS = 100, 40_000  # of one attempt, for each replica that may move, and at most
WHOLE_CLUSTER = 300  # replicas: clusters of at most so many, on as many brokers as are packed together, are packed as a whole
WHOLE_EACH, WHOLE_STEPS = 500, 15_000  # of one attempt, for each replica, and at most: half a second where nothing is compiled
WHOLE_TRIES, WHOLE_VAIN = 16, 6  # attempts, in turn from the best placement so far and from where the last ended; without success, in a row
OUT_PRICE, BEYOND_PRICE = 1.0, 1.0  # prices of a broker outside its bands, and of being beyond by a replica of mean load
LEAST_PRICE = 1e-9  # of that price: what is cheaper by less is not

# --- Reduce
# `python -m benchmarks.ablation --without sideways,send_home`; of `sideways` also `benchmarks.heavy_tails`.
LAST_BROKERS = 0.1  # of the brokers; where more are out of band, replicas only go home
HOME_SHARE = 0.01  # of the changes, that a pass takes home, for another pass
SIDEWAYS_EACH, SIDEWAYS_STEPS = 250, 2_500  # random steps in the first pass: for each replica that moves, and at most
SIDEWAYS_ALL, SIDEWAYS_MOST = 2_000, 640_000  # in all passes: for each replica that moves, and at most
SIDEWAYS_SMALL, SIDEWAYS_FEW = 20_000, 10_000  # up to so many replicas there are fewer in all: such a plan may run interpreted
# A pass of n steps has to save this share of the cost of the moves, or n / replicas times this rate if that is less, for another pass.
SIDEWAYS_SHARE, SIDEWAYS_RATE = 0.002, 0.1
STAND_INS = 32  # replicas in a row on a broker, that a step looks at for one that may go in place of others
NEAR = 4  # replicas that left the same broker, the next in the list, among which a step chooses the second that goes home
SIDEWAYS_HEAT = 0.02  # moves of mean cost, that a step may cost more with a chance of 1/e

# --- Schedule
FEW_TRANSFERS = 0.05  # of the leaderships that are left: with fewer in a turn, where a budget allows nothing else, there is no other
LATE_SHARE = 0.01  # of the changes: where more find no turn, these go first, and the others after them
JUDGED_TOGETHER = 2000  # changes that are judged at a time: some milliseconds
BUNDLE_LOOKS = 16  # changes weighed for the next place in a bundle
VAIN_LOOKS, VAIN_LOOKS_EACH = 1_000, 2  # in a row without a bundle, after which there is none: so many, and for each change waiting

# --- Finish
# `python -m benchmarks.ablation --without polish`.
POLISH_PARTNERS = 12  # brokers that a step may go to or come from: the best by loads, and as many at random
POLISH_LOOKS = 256  # steps of a broker that are evaluated in full, those first that gain most for their cost
POLISH_OF_ONE = 32  # of them between two brokers
FREE_FACTOR = 10.0  # factor on the gain of a transfer of leadership, which costs nothing
POLISH_SHARE = 0.01  # of what is out of band on the broker, that a step has to bring
POLISH_STEPS, POLISH_PASSES = 256, 64  # steps of a broker in one pass, and passes
URGENT, USEFUL = 2.0, 1.0  # rank of a change that takes a replica from where it may not be, and of one that only changes the leader
LEAST_RANK = 1e-6  # of a repair, however much worse the potential gets

# --- Whether a round is worth its moves
LEAST_PROGRESS = 0.01  # of the potential of the brokers it changes; a round that brings less is not worth its moves
WORSE = 1.05  # times the potential of all brokers, at most, for some that come into band

# --- What cannot be reached
# `python -m benchmarks.ablation --without "within reach"`, variant heavy.
AMPLE = 0.9  # of the band: where what is left for a typical broker is above its lower end by the rest, all can get into it
SHORT = 0.25  # of the band: where it is below the middle by more, and all can still get into the band, the middle is no longer aimed at
MANY_SUSPECTS = 8  # where suspects hold one of so many replicas, all partitions are looked at first
LARGE_CLUSTER, MOST_LOW = 200_000, 0.5  # replicas; of the brokers: where so many are out, a search finds more than proofs would spare it

# --- States and memory
# Chosen by the time they take; no plan depends on them.
FEW_LISTS = 4  # lists of at most one broker in so many are mended one by one; beyond, all are made again
TOGETHER = 32  # entries that are compared, and asked of memory, before one is fetched
PAGE = 1024  # entries: rows begin where pages of memory do, so that those that are not full touch fewer
LIST_STEP = 512  # entries: lengths of replica lists are multiples of it, so that they seldom change
TRAIL = 16_384  # commits that a state remembers, so that it can be brought back by them
SOON = 8  # entries of a list before one is looked at, what it names is asked of memory
