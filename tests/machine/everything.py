"""The whole machine, with the frequency of each rule, and a smaller one for bulk calls."""

from __future__ import annotations

from tests.machine.bulk import Bulk
from tests.machine.definitions import Definitions
from tests.machine.rules import Confirms, Gets, Leases, Lives, Operator, Puts, Units
from tests.machine.stories import Stories


class Everything(Definitions, Puts, Gets, Confirms, Units, Leases, Operator, Lives, Stories, Bulk):
    """Every verb; those that fill and empty queues are drawn more often."""

    put_2 = put_3 = put_4 = Puts.put
    in_sequence_2 = in_sequence_3 = Puts.put_in_sequence
    by_hand_2 = by_hand_3 = Puts.put_by_hand
    get_2 = get_3 = get_4 = Gets.get
    get_in_sequence_2 = get_in_sequence_3 = Gets.get_in_sequence
    get_strictly_2 = get_strictly_3 = Gets.get_strictly
    browse_2 = browse_3 = Gets.browse
    settle_2 = settle_3 = Units.settle
    prepare_2 = Units.prepare
    put_in_turns_2 = Leases.put_in_turns
    enter_lease_2 = enter_lease_3 = Leases.enter_lease
    lock_2 = Confirms.browse_and_lock
    look_2 = look_3 = Operator.look
    get_locked_2 = Confirms.get_locked
    advance_2 = Lives.advance
    wait_2 = Lives.wait
    live_2 = live_3 = live_4 = Stories.live
    flawed_group_2 = flawed_group_3 = Stories.flawed_group
    next_member_2 = Stories.next_member_pending
    cross_2 = cross_3 = Stories.cross
    enter_2 = Stories.enter


class InBulk(Definitions, Puts, Gets, Units, Lives, Bulk):
    """Claims, surveys and stagings, among puts, gets and units."""

    put_2 = put_3 = Puts.put
    put_many_2 = put_many_3 = put_many_4 = Puts.put_many
    by_hand_2 = by_hand_3 = Puts.put_by_hand
    write_group_2 = write_group_3 = Puts.write_group
    settle_2 = Units.settle
    advance_2 = Lives.advance
    claim_story_2 = claim_story_3 = claim_story_4 = claim_story_5 = Bulk.claim_what_is_put
    claim_2 = claim_3 = claim_4 = claim_5 = Bulk.claim
    plan_2 = Bulk.plan_claims
    settle_claims_2 = Bulk.settle_claims
    claim_ahead_2 = Bulk.claim_ahead
    survey_2 = survey_3 = Bulk.survey
    stage_2 = Bulk.stage
    stage_and_settle_2 = stage_and_settle_3 = Bulk.stage_and_settle
    settle_staging_2 = Bulk.settle_staging
