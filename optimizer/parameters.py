"""Every constant that decides how the search goes, by stage and operator, each with its meaning and unit.

Modules import from here; nothing here depends on a module. The head of a group, or else the comment of a constant, says how the values
were chosen and what to run before one is changed. Shares are 0 to 1, counts are positive. The constants of the potential are in
`optimizer.problem`, those of an annealing (`FIND`, `RETURN`, `PACK`, `LEAD`) in `optimizer.search.repack`.
"""

from __future__ import annotations

# --- Rounds
# How long the search continues. `python -m benchmarks.ablation --without restarts`.
ROUNDS_OF_BALANCE = 400  # rounds of `balance` for one target, at most
FEW_MOVES = 0.05  # of all replicas: if a budget needs no more moves to choose from, one round of `balance` is enough
MOST_ROUNDS = 200  # rounds of one search, at most
MOST_RESTARTED = 20_000  # replicas: with more, there is one seed
VAIN_RESTARTS, VAIN_REPLICAS = 6, 4_000  # with hard goals missed: restarts without success in a row, at most, and these times replicas
MOST_CHEAPER, CHEAPER_CHANGES = 8, 500  # with nothing left to do: seeds that may find a cheaper plan, at most, and times changes of one
MOST_ESCAPED = 200_000  # replicas: with more, escapes are not worth their time
SEED_STEP = 1_000_003  # difference between the seeds of two restarts
SEEDS = 2**40  # seeds are smaller, so that their products fit into int64
MANY_CHANGES = 50_000  # changes of one round: with more, a state is freed before the record is made
POLISH_ROOM = 20_000  # changes that a log has room for, besides one for each replica

# --- What may be published
LEAST_STEP = 1e-6  # least fall of the potential by a step of `polish`, and with `--acceptance potential` by any action
ENDLESS = 2**62  # moves, if no budget limits them
UNIT_SHARE = 0.5  # of a move, byte or partition: a budget may be exceeded by less, since plans print whole numbers
CHOICE_OF_MOVES = 2.0  # moves to choose from, for each move that the budget is enough for

# --- Construct and repair
# Judged on clusters that lose brokers or racks: `benchmarks.ledger`, scenario c and variants racks.
SAMPLED_TARGETS, MANY_TARGETS = 160, 12  # brokers looked at for one replica; fewer if more than `MANY_TO_MOVE` replicas have to move
MOST_MENDERS = 16  # the same for a replica of a crowded rack, if more than `MANY_TO_MOVE` are in crowded racks
MANY_TO_MOVE = 5_000  # replicas: with more, fewer brokers are looked at for each

# --- Brokers side by side
# How many stars a batch has. It depends on the cluster alone, so that the plan is the same on any machine.
MOST_STARS = 64  # stars in a batch, at most ...
BROKERS_A_STAR = 150.0  # ... and at most the square of active brokers over this ...
REPLICAS_A_STAR = 32.0  # ... and at most the replicas of a typical broker over this
RANKED = 16  # partners ranked for a broker; other brokers may have taken some of them
WIDEST = 8  # partners in a star, at most
MOST_MOVED = 64  # replicas from one broker to another in a star, at most
LEADERSHIPS = 16  # leadership transfers of a broker in a round, at most

# --- Rounds of `balance`
# Judged by CPU time and moves from 50,000 replicas on: `benchmarks.planner`.
MOST_SWAPPED, FEW_LOW = 48, 32  # partners that a broker tries to swap with, if at most so many brokers are outside their ranges
PATIENCE = 4  # rounds without success after which a broker is given up
LOOK_BACK = 16  # rounds within which the `badness` of all brokers has to fall ...
LEAST_FALL = 0.01  # ... by this share, unless fewer brokers are outside; else `balance` ends
MANY_LOW = 0.75  # of the brokers: if more are outside, the replicas of all brokers are fetched at the start
WORTH_SHARING, UNSHARED = 30_000, 1 << 62  # replicas, or pairs of brokers, that threads share at least: some tenths of a millisecond

# --- Leadership transfers
LOOKED_AT = 64  # replicas that are weighed first: those with the highest bounds on their gain
SLACK, LEAST_SLACK = 1e-6, 1e-12  # of bounds: margins for rounding errors

# --- Candidates of a broker
KEPT = 128  # candidates kept from a scan
LEAST_GAIN = 1e-8  # least fall of the potential by a step on a target
HALVINGS = 8  # of the range of keys, before one of the few remaining keys is selected
ANYWAY = 10.0  # factor on the gain of a replica that moves anyway, which costs no move; a replica of no bytes has at most 2

# --- Hard limits that the last target leaves broken
FIRM_WEIGHT = 1e9  # weight of a hard limit then, against a soft goal: an excess of 1/10,000 weighs more than missed soft goals

# --- Limits as bands
# Soft count limits beside soft capacities: nine brokers of 60 clusters above them, and 46 at 1. `python -m benchmarks.tight_limits`.
ENOUGH = 0.5  # of the load that brokers lack below the band: if less has to leave the brokers above the limit, the limit is no band

# --- What a replica costs
# `python -m benchmarks.heavy_tails --seeds 60,61,62,63,64,65`; docs/benchmarks.md, what a move costs, and *Planner* if replicas lack.
COST_ADDED = 3.0  # mean costs, added to the cost that a gain is divided by: no replica moves only because it is small
DUE_ADDED = 1.0  # mean sizes, the same if the target broker lacks replicas, so that moves are needed anyway
LACKING = 0.5  # of the largest lack of a broker in any load: if its lack of replicas is larger, it lacks replicas

# --- Relocate
# `PATIENT`: with hard limits and equal costs, moves over the bound fell from 7–30% to 0–3% (`benchmarks.meta_rebalancer`).
PATIENT = 0.9  # of the gain for its cost of the best move that is not allowed: a move with less waits

# --- Swaps
# `python -m benchmarks.ablation --without swap_out`, with few replicas a broker: `benchmarks.planner --per-broker 50 --bands 0.05`.
SWAP_KEPT = 32  # replicas of each of two brokers: those that alone gain most on the other
SWAP_SAMPLE = 64  # replicas of the broker outside its range, compared with all of a partner
SWAP_PARTNERS = 24  # random partners for one swap
SWAP_ENOUGH = 0.1  # of the broker's `badness`: a swap that gains so much is made without a look at further partners
SWAP_SHARE = 5e-3  # of the broker's `badness`: least gain of a swap
SWAPS_OF_ONE = 8  # swaps of a broker in one pass, at most
SWAP_FALL = 0.05  # of the `badness` of all brokers: least fall for another pass, unless fewer brokers are outside
SWAP_LOOKS_EACH = 1_000  # pairs of replicas looked at, for each replica of the cluster

# --- Topics
# `python -m benchmarks.ablation --without topics`, variants topics and everything.
OFFERED = 4  # replicas of a broker looked at for one that it gives away
TOPIC_TARGETS = 10  # brokers looked at for one replica
DONORS, MOST_DONORS = 24, 400  # replicas looked at for one that a broker takes: at first, and in a second attempt
LEAST_TOPIC_GAIN = 1e-9  # least fall of the potential by a topic move
MOST_OFFERED, MOST_OFFERS = 4 * OFFERED, MOST_DONORS  # replicas of a broker offered to all others; offers to one broker

# --- Destroy and repair
# `python -m benchmarks.gap` for small clusters; excluded topics of 100x10k for the last brokers.
PACKED_BROKERS = 0.25  # of the brokers: if more are outside, and more than `repack` packs together, most have to stay outside
VAIN_ATTEMPTS, LEAST_TRIES = 6, 2  # attempts: without success in all, shared by the brokers outside; for each broker, at least
ANNEAL_EACH, ANNEAL_STEPS = 100, 40_000  # steps of one attempt: for each replica that may move, and at most
WHOLE_CLUSTER = 300  # replicas: a cluster with no more, and with no more brokers than the largest group, is packed as a whole
WHOLE_EACH, WHOLE_STEPS = 500, 15_000  # steps of one attempt: for each replica that may move, and at most; half a second interpreted
WHOLE_TRIES, WHOLE_VAIN = 16, 6  # attempts, in turn from the best placement and from the end of the last one; without success in a row
OUT_PRICE, BEYOND_PRICE = 1.0, 1.0  # prices of a broker outside its ranges, and of an excess of one replica of mean load, in typical moves
LEAST_PRICE = 1e-9  # of a typical move: a smaller saving does not count

# --- Reduce
# `python -m benchmarks.ablation --without sideways,send_home`; of `sideways` also `benchmarks.heavy_tails`.
LAST_BROKERS = 0.1  # of the brokers: if more are outside, replicas only go home
HOME_SHARE = 0.01  # of the changes: another pass follows if one takes more home
SIDEWAYS_EACH, SIDEWAYS_STEPS = 250, 2_500  # random steps in the first pass: for each replica that moves, and at most
SIDEWAYS_ALL, SIDEWAYS_MOST = 2_000, 640_000  # steps in all passes: for each replica that moves, and at most
SIDEWAYS_SMALL, SIDEWAYS_FEW = 20_000, 10_000  # replicas; steps in all passes with no more replicas: such a plan may run interpreted
# Another pass follows if a pass of n steps saves this share of the cost of all moves, or n / replicas times this rate if that is less.
SIDEWAYS_SHARE, SIDEWAYS_RATE = 0.002, 0.1
STAND_INS = 32  # replicas in a row on a broker that a step looks at for a stand-in
NEAR = 4  # next replicas in the list, sorted by home broker, of which a step chooses a second one to send home
SIDEWAYS_HEAT = 0.02  # moves of mean cost: what a step may cost with a probability of 1/e

# --- Schedule
# `STILL_GOOD`: at 1, budgets (`benchmarks.budgets`) that use single steps take six to eight times the time for some 1% less undone.
STILL_GOOD = 0.8  # of its rank when it was judged last: an action that has more is still made at once, and not ranked again
FEW_TRANSFERS = 0.05  # of the waiting changes: with a budget, a turn that makes no more is the last if only leaderships wait
LATE_SHARE = 0.01  # of the changes: if more find no turn, the schedule starts again with these first
JUDGED_TOGETHER = 2000  # changes that a thread judges at a time, at least: some milliseconds
BUNDLE_LOOKS = 16  # changes weighed for the next change of a bundle
VAIN_LOOKS, VAIN_LOOKS_EACH = 1_000, 2  # looks without success, after which there is no bundle: so many, and for each waiting change

# --- Finish
# `python -m benchmarks.ablation --without polish`.
POLISH_PARTNERS = 12  # brokers that a step may go to or come from: the best by loads, and for topics as many at random
POLISH_LOOKS = 256  # steps of a broker that are evaluated in full: those that gain most for their cost
POLISH_OF_ONE = 32  # of them, from one broker to another
FREE_FACTOR = 10.0  # factor on the gain of a leadership transfer, which costs nothing
POLISH_SHARE = 0.01  # of the broker's `badness`: least gain of a step
POLISH_PASSES = 64  # passes, at most
URGENT, USEFUL = 2.0, 1.0  # rank of a change that takes a replica off a broker or rack that it must leave, and of a change of leader alone
LEAST_RANK = 1e-6  # of a repair, however much the potential rises

# --- Whether a round is worth its moves
LEAST_PROGRESS = 0.01  # of the potential of the brokers that a round changes: with a smaller fall it is not worth its moves
WORSE = 1.05  # times the potential of all brokers: the most that a round may leave if it brings brokers within their ranges

# --- What cannot be reached
# `python -m benchmarks.ablation --without "within reach"`, variant heavy.
AMPLE = 0.9  # of half a range: if the load left for a typical broker is further below the middle, lower ends fall
SHORT = 0.25  # of half a range: if it is further below the middle, but lower ends need not fall, the middle is no longer aimed at
MANY_SUSPECTS = 8  # if suspects hold more than one replica for so many partitions, all partitions are looked at first
LARGE_CLUSTER, MOST_LOW = 200_000, 0.5  # replicas, and share of brokers outside: above both, a search finds more than proofs save

# --- States and memory
# Chosen by the time they take; no plan depends on them.
FEW_LISTS = 4  # if lists of at most one broker in so many change, they are mended one by one, else all are built again
TOGETHER = 32  # entries that are compared, and requested from memory, before the first is fetched
PAGE = 1024  # entries: rows start at the start of a memory page, so that rows that are not full touch fewer pages
LIST_STEP = 512  # entries: the room of replica lists is a multiple of it, so that it seldom changes
TRAIL = 16_384  # commits that a state remembers, so that they can be undone
SOON = 8  # entries: so far ahead in a list, the data of an entry is requested from memory
