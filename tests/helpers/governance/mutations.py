"""Defences, each switched off by one replacement, and a test that must fail then.

A mutation is the name of a function or constant, an expression that replaces it, and the test. The
expressions see the original as `was`; `without(was, text)` is the function without a statement.
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
_ERRORS = "governance/test_attack_errors.py::"
_RARE = "governance/test_attack_rare.py::"
_STEPS = "governance/test_attack_steps.py::"
_OWN = "governance/test_attack_own_models.py::"
_INFERENCE = "governance/test_attack_inference.py::"
_ATOMS = "sites/test_atoms.py::"
_T = "fedlasso.fitting.examination.table_one."
_TABLE = "models/test_checkup.py::"
_OFFICER = "governance/test_officer_summary.py::"
_RUN = "deploy/test_run.py::"
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
             "lambda to, kit: (was(to, kit), [f.write_text('{}') for f in to.rglob('*.json')])",
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
    # Atoms and second moments.
    Mutation(_S + "atoms.choose_atoms",
             "lambda split, count, turn, secret: was(split, count, turn, b'known')",
             _ATOMS + "test_who_knows_no_secret_knows_no_part_of_a_split"),
    Mutation(_S + "fold_assignment.draw_atoms",
             "lambda count, sizes, strata, secret, redraws:"
             " was(count, sizes, strata, b'known', redraws)",
             _ATOMS + "test_rows_are_cut_with_the_secret"),
    Mutation(_S + "fold_assignment.place_in_folds",
             "lambda *given: __import__('numpy').random.default_rng().permutation(was(*given))",
             _ATOMS + "test_another_seed_or_another_fit_gives_the_same_folds"),
    Mutation(_S + "fold_assignment.FoldDraw._suits", "lambda self, atoms: True",
             _RARE + "test_the_rows_that_a_split_leaves_out_are_not_few_at_a_value"),
    Mutation(_S + "fold_assignment.fill_batches",
             "lambda sizes, order, rows: was(sizes, order, 10)",
             _INFERENCE + "test_batches_have_the_rows_that_the_policy_demands"),
    Mutation(_G + "cuts.MANY_REPEATED", "2.0",
             "governance/test_attack_splits.py::test_whether_rows_look_repeated_is_disclosed_once"),
    Mutation(_G + "door.recall_cut", "lambda *_: None",
             "governance/test_attack_splits.py::test_every_part_is_a_union_of_atoms_cut_once"),
    Mutation(_S + "site.check_moments", "lambda *_: None",
             "governance/test_attack_pencil.py::"
             "test_a_site_refuses_by_itself_what_its_ledger_would"),
    Mutation(_S + "moment_rules._along",
             "lambda *_: []",
             "governance/test_attack_pencil.py::"
             "test_curvatures_along_directions_told_every_record"),
    Mutation(_G + "guard.GuardedSite._charge_moments", "lambda *_: []",
             "governance/test_attack_pencil.py::"
             "test_curvatures_of_more_columns_than_half_the_rows_are_refused"),
    # Counting, and what refusals reveal.
    Mutation(_G + "guard.GuardedSite._count", "lambda *_: 0.0",
             "governance/test_attack_logistic.py::test_a_site_that_sends_few_numbers_keeps_them"),
    Mutation(_G + "counting.MOST_OF_OTHERS", "1e9",
             "governance/test_counting.py::test_rows_of_a_large_neighbour_do_not_raise_the_limit"),
    Mutation(_G + "guard.RANKED", "1",
             "governance/test_attack_swaps.py::test_one_direction_takes_more_ranks_than_a_file_has"),
    Mutation(_G + "guard._numbers_of", "lambda asked: b''",
             "governance/test_attack_budgets.py::"
             "test_the_same_model_with_other_numbers_is_another_candidate"),
    Mutation(_G + "guard._models_of", "lambda asked: was(asked)[:, :-1]",
             "governance/test_attack_budgets.py::"
             "test_the_same_model_with_other_numbers_is_another_candidate"),
    Mutation(_G + "guard.check_open", "lambda *_: None",
             "governance/test_attack_budgets.py::"
             "test_a_fit_is_closed_after_fewer_refusals_than_a_file"),
    Mutation("fedlasso.errors.QuotesRecords.unquoted", "property(lambda self: self.args[0])",
             "governance/test_attack_refusals.py::"
             "test_refused_openings_tell_no_count_and_no_value"),
    # Models of the coordinator's choice.
    Mutation(_G + "guard.check_steepness", "lambda *_: None",
             _STEPS + "test_a_model_that_is_a_step_is_refused"),
    Mutation(_G + "guard.check_steepness", "lambda *_: None",
             _INFERENCE + "test_no_question_of_inference_is_answered_at_a_step"),
    Mutation(_G + "guard.check_effective_rows", "lambda *_: None",
             _INFERENCE + "test_no_question_of_inference_is_answered_at_a_step"),
    Mutation(_G + "guard.check_effective_rows", "lambda *_: None",
             _STEPS + "test_a_model_whose_curvature_rests_on_a_few_rows_is_refused"),
    Mutation(_G + "record_checks.check_points", "lambda *_: None",
             _CELLS + "test_a_slope_beyond_use_is_refused"),
    Mutation(_G + "record_checks._curvature",
             "lambda view, asked, b: __import__('numpy').ones(99)"
             " if asked.discloses.held_out else was(view, asked, b)",
             _ERRORS + "test_effective_rows_alone_keep_records"),
    Mutation(_G + "record_checks.shifted_curvature",
             "lambda *_: __import__('numpy').ones(99)",
             _ERRORS + "test_effective_rows_alone_keep_records"),
    Mutation(_S + "held_out.ERROR_BITS", "52",
             _ERRORS + "test_errors_of_models_tell_no_record"),
    Mutation(_S + "assessing.RecalibrationAt._rests_on_many", "lambda *_: True",
             _ERRORS + "test_each_model_of_a_fold_is_judged_by_itself"),
    Mutation(_G + "guard.judge_own_models",
             "lambda *_: __import__('contextlib').nullcontext()",
             _OWN + "test_own_models_rest_on_many_rows"),
    Mutation(_G + "guard.check_steepness",
             "without(was, 'raise FedLassoError(\"DualAt: the scale must be at most 1\")')",
             _OWN + "test_dual_values_end_at_a_scale_of_one"),
    Mutation(_G + "guard.check_means", "lambda *_: None",
             "governance/test_attack_budgets.py::test_views_that_did_not_leave_are_not_kept"),
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
    Mutation(_S + "inference.floor_times", "lambda asked, times: asked",
             _CELLS + "test_a_baseline_has_steps_of_several_events"),
    Mutation(_S + "assessing.EVENT_STEP", "0.0",
             _CELLS + "test_events_are_counted_in_pairs"),
    Mutation(_S + "assessing.least_rows", "lambda site: 1",
             _CELLS + "test_a_policy_asks_for_larger_cells"),
    Mutation(_S + "assessing.count_cells", "lambda rows, least: 20",
             _CELLS + "test_a_policy_asks_for_larger_cells"),
    Mutation(_S + "assessing.weigh_ranks",
             "lambda scores, ends:"
             " was(scores.argsort(kind='stable').argsort().astype(float), ends)",
             _CELLS + "test_equal_predictions_are_not_cut_by_the_order_of_rows"),
    Mutation(_S + "cells.TIES", "2.0**-60",
             _CELLS + "test_predictions_that_differ_by_rounding_are_equal"),
    Mutation(_S + "cells.TIME_FLOOR", "1e-30",
             _CELLS + "test_short_intervals_of_time_are_joined"),
    Mutation(_S + "cells.level_rows", "lambda asked: asked",
             _CELLS + "test_numbers_of_rows_of_a_level_are_known_to_a_factor_of_two"),
    Mutation(_S + "recalibration.LARGEST_INTERCEPT", "float('inf')",
             _CELLS + "test_a_slope_beyond_use_is_refused"),
    Mutation(_S + "recalibration.ROUNDED_BITS", "52",
             _CELLS + "test_recalibrations_have_few_bits"),
    Mutation(_T + "_withhold", "lambda sites, pooled: sites",
             _TABLE + "test_no_difference_shows_a_few_rows_or_missing_values"),
    Mutation(_T + "_withhold_missing", "lambda summaries: summaries",
             _TABLE + "test_no_difference_shows_a_few_rows_or_missing_values"),
    # The report for a data protection officer.
    Mutation(_G + "officer_summary.at_chosen_model", "lambda question: False",
             _OFFICER + "test_many_questions_at_chosen_models_are_unusual"),
    Mutation(_G + "officer_summary.FITS", "1 << 30",
             _OFFICER + "test_many_questions_at_chosen_models_are_unusual"),
    Mutation(_G + "officer_summary.RANGES", "()",
             "governance/test_page.py::test_what_is_unusual_stands_out"),
    Mutation(_G + "officer_summary.MANY_PERCENT", "1e9",
             "governance/test_page.py::test_what_is_unusual_stands_out"),
    Mutation(_G + "door.describe_records", "lambda entry, *_: entry",
             _OFFICER + "test_ordinary_fits_are_not_unusual"),
    # Atoms of enough rows, and who takes part.
    Mutation(_S + "site.FoldDraw",
             "lambda *given: __import__('dataclasses').replace(was(*given), atom_rows=1)",
             "governance/test_attack_splits.py::test_every_part_is_a_union_of_atoms_cut_once"),
    Mutation(_D + "nvflare.restrictions.is_allowed", "lambda *_: True",
             "deploy/nvflare/test_attacks.py::"
             "test_a_cell_takes_messages_only_from_whom_it_should"),
    Mutation(_G + "door.check_named", "lambda *_: None",
             "deploy/test_masked.py::"
             "test_the_number_of_sites_is_what_they_sign_and_not_what_the_coordinator_says"),
    Mutation(_G + "guard.GuardedSite._check_site_weights", "lambda *_: None",
             "deploy/test_masked.py::"
             "test_no_site_is_taken_out_of_a_total_by_what_rows_are_worth"),
    Mutation(_G + "guard.GuardedSite._history", "lambda *_: b''",
             "deploy/test_masked_attacks.py::"
             "test_what_sites_remember_is_part_of_what_masks_are_bound_to"),
    Mutation(_G + "guard.check_powers", "lambda *_: None",
             "deploy/test_masked_attacks.py::"
             "test_a_view_that_says_its_numbers_are_smaller_is_refused"),
    Mutation(_G + "masks.Masks.again", "lambda *_: None",
             "governance/test_masks.py::"
             "test_a_number_is_answered_once_and_asked_again_it_has_the_same_answer"),
    Mutation("fedlasso.cli.federation.describe_new_fit", "lambda left: 'a new fit'",
             "deploy/test_without.py::"
             "test_a_fit_without_a_site_ends_once_all_others_have_accepted"),
    Mutation(_D + "run.plan_without",
             "lambda earlier, project, known, left: was(earlier, project, known, ())",
             _RUN + "test_a_fit_without_a_site_is_a_new_one"),
    # Files and records of what happened.
    Mutation("fedlasso.atomic_files._open_new_private",
             "lambda path, flags: os.open(path, flags, 0o644)",
             "deploy/test_tampering.py::test_what_a_fit_writes_is_for_its_owner_only"),
    Mutation(_D + "run.make_private", "lambda folder: folder.mkdir(parents=True, exist_ok=True)",
             "deploy/test_tampering.py::test_what_a_fit_writes_is_for_its_owner_only"),
    Mutation(_G + "audit.Audit._check_anchor", "lambda *_: None",
             "governance/test_audit.py::test_an_audit_that_was_cut_and_chained_anew_shows"),
    Mutation(_D + "run.reconcile", "lambda *_: {}",
             _RUN + "test_a_reply_that_no_audit_knows_is_an_error"),
    Mutation(_D + "network.Network._exchange", "without(was, 'receipts[k] = \"\"')",
             "deploy/test_masked.py::"
             "test_a_fit_resumes_after_an_impossible_total_once_the_site_is_mended"),
    Mutation("fedlasso.federation.checking.check_total", "lambda *_: None",
             "deploy/test_masked.py::"
             "test_a_fit_resumes_after_an_impossible_total_once_the_site_is_mended"),
    # Texts of sites, budgets and approval.
    Mutation(_D + "network.printable", "lambda text: text",
             "deploy/test_bad_replies.py::test_escape_sequences_in_a_refusal_reach_nobody"),
    Mutation(_G + "lifetime.Lifetime.check", "lambda *_: None",
             "governance/test_attack_budgets.py::test_a_file_is_closed_after_many_refusals"),
    Mutation(_G + "guard.require_approval", "lambda *_: None",
             "governance/test_guard.py::"
             "test_what_depends_on_the_records_is_refused_in_one_sentence"),
    # Versions with known holes.
    Mutation("pathlib.Path.read_text",
             "lambda self, *given, **more: was(self, *given, **more).replace('cryptography>=50',"
             " 'cryptography>=42')",
             "test_dependencies.py::test_no_version_with_a_known_hole_is_admitted"),
)  # fmt: skip
