"""Defences, each switched off by one replacement, and a test that must fail then.

A mutation is the name of a function or constant, an expression that replaces it, and the test. The
expressions see the original as `was`.
"""

from typing import NamedTuple


class Mutation(NamedTuple):
    """A defence, what replaces it, and the test that notices."""

    defence: str
    replacement: str
    test: str


_G = "fedlasso.governance."
_D = "fedlasso.deploy."
_S = "fedlasso.sites."
_MEMBERSHIP = "governance/test_attack_membership.py::"
_KITS = "deploy/nvflare/test_attack_kits.py::"
_CELLS = "governance/test_attack_cells.py::"
MUTATIONS = (
    # Membership and approval.
    Mutation(_G + "door.check_members", "lambda *_: None",
             _MEMBERSHIP + "test_a_fit_with_one_more_site_is_refused_until_all_operators_accept"),
    Mutation(_G + "membership.pinned_members",
             "lambda audit, data: next((e.sites for e in audit.entries() if e.sites"
             " and e.data == data and e.verdict == 'sent'), {})",
             _MEMBERSHIP + "test_a_file_saved_again_takes_part_with_the_same_sites"),
    Mutation(_G + "membership.describe_change",
             "lambda pinned, members, site: was(pinned, {k: pinned.get(k, v)"
             " for k, v in members.items()}, site)",
             _MEMBERSHIP + "test_a_site_with_another_key_is_another_site"),
    Mutation(_G + "consent.approval_scope", "lambda transfers: transfers[0][0].fit",
             "governance/test_attack_approval.py::"
             "test_an_approved_fit_that_is_opened_otherwise_is_asked_about"),
    Mutation(_G + "door._opening_hash", "lambda opening, members: ''",
             "governance/test_attack_approval.py::"
             "test_an_approved_fit_that_is_opened_otherwise_is_asked_about"),
    # What a site may send.
    Mutation(_G + "door.Door._summarise",
             "lambda self, request: msgspec.structs.replace(was(self, request), lost=())",
             "governance/test_door.py::test_a_door_names_the_heads_that_its_audit_has_lost"),
    Mutation(_G + "guard.GuardedSite._check_alone", "lambda *_: None",
             "deploy/test_masked.py::"
             "test_what_is_not_a_sum_is_answered_only_where_the_policy_names_it"),
    Mutation(_G + "identity.Identity.recognise", "lambda *_: None",
             "governance/test_masks.py::test_a_key_that_was_not_accepted_is_refused"),
    Mutation(_G + "door.check_cells", "lambda *_: None",
             "governance/test_attack_rare.py::"
             "test_a_response_that_one_patient_has_is_not_asked_about"),
    # Kits and the engine.
    Mutation(_D + "kit.find_unexpected", "lambda *_, **__: []",
             _KITS + "test_a_kit_that_came_with_more_is_refused_before_a_key_is_made"),
    Mutation(_D + "kit._check_site_kit", "lambda *_: None",
             _KITS + "test_names_and_address_are_no_more_than_that"),
    Mutation(_D + "nvflare.engine.write_settings",
             "lambda to, kit: [(to / n).mkdir(parents=True) for n in ('startup', 'local')]",
             _KITS + "test_a_site_writes_its_own_settings"),
    Mutation(_D + "nvflare.restrictions.refuse_reports", "lambda: None",
             _KITS + "test_nobody_gets_a_report_of_the_engine"),
    Mutation(_D + "nvflare.restrictions.check_replaced", "lambda *_: None",
             _KITS + "test_a_function_is_replaced_wherever_the_engine_has_it"),
    Mutation(_D + "nvflare.engine.IN_FORCE", "''",
             _KITS + "test_a_site_without_restrictions_is_not_ready"),
    Mutation(_D + "nvflare.restrictions.is_ours", "lambda _: True",
             "deploy/nvflare/test_program.py::"
             "test_the_identity_of_a_job_leads_out_of_no_folder"),
    # Files, texts and lengths.
    Mutation("fedlasso.atomic_files._open_new", "lambda path, flags: os.open(path, flags, 0o666)",
             "test_atomic_files.py::test_a_link_under_the_temporary_name_is_not_followed"),
    Mutation("fedlasso.atomic_files._NO_LINKS", "0",
             "test_atomic_files.py::test_nothing_is_appended_through_a_link"),
    Mutation("fedlasso.cli.terminal.plain_text", "lambda text: text",
             "test_terminal.py::test_names_of_columns_do_not_steer_the_terminal"),
    Mutation("fedlasso.csv_text._FORMULA", "()",
             "test_terminal.py::test_numbers_stay_numbers_and_formulas_do_not"),
    Mutation("fedlasso.federation.checking.max_reply_bytes", "lambda *_: 1 << 40",
             "deploy/test_bad_replies.py::test_too_many_bytes_are_not_even_read"),
    # Cells of rows.
    Mutation(_S + "cells.ROW_STEP", "0.0", _CELLS + "test_rows_that_change_places_tell_nothing"),
    Mutation(_S + "recalibration.LARGEST_SLOPE", "float('inf')",
             _CELLS + "test_a_slope_beyond_use_is_refused"),
    Mutation(_S + "recalibration.EFFECTIVE_ROWS", "0.0",
             _CELLS + "test_the_curvature_of_a_steep_model_rests_on_a_few_rows"),
    Mutation(_S + "assessing.CELL_ROWS", "1",
             _CELLS + "test_a_site_with_few_cases_counts_no_pairs"),
    Mutation(_S + "inference.join_events",
             "lambda counts, least: __import__('numpy').arange(len(counts) + 1)",
             _CELLS + "test_a_baseline_has_steps_of_several_events"),
)  # fmt: skip
