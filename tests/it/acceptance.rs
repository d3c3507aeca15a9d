//! The acceptance rows of the wire dossier and the tests that stand for them.
//!
//! A row is named by its clause (`B-8.3`) or by its place in the contract's own checklist
//! (`7.6d`). The table is checked: each test it names exists in this binary.

/// The gateway's part of each row: clause, test.
const GATEWAY: [(&str, &str); 77] = [
    ("I-2", "gateway::asking::asking_costs_no_budget"),
    ("I-2", "gateway::mailing::agents_run_out_of_rounds_and_people_do_not"),
    ("I-3", "gateway::sessions::the_platform_names_a_session_with_numbers_on_collision"),
    ("I-5", "gateway::credentials::without_a_good_credential_every_route_says_401_and_what_to_do"),
    ("C-11", "gateway::mailing::a_mail_to_new_opens_a_session_and_arrives_with_every_field"),
    (
        "B-1.2",
        "gateway::decoding::every_route_but_the_heartbeat_refuses_unknown_and_mistyped_fields",
    ),
    (
        "B-1.4",
        "gateway::streams::a_first_connection_replays_nothing_and_strange_ids_have_their_rules",
    ),
    ("B-1.6", "gateway::reading::the_inbox_is_newest_first_and_marks_only_what_it_is_told"),
    ("B-2.3", "gateway::discovering::an_absent_list_keeps_the_mirror_and_an_empty_one_clears_it"),
    ("B-2.4", "gateway::discovering::an_absent_list_keeps_the_mirror_and_an_empty_one_clears_it"),
    ("B-2.6", "gateway::mailing::a_mail_to_new_opens_a_session_and_arrives_with_every_field"),
    ("B-2.U", "gateway::decoding::the_heartbeat_takes_unknown_fields_and_names_them"),
    ("B-3.1", "gateway::mailing::copies_arrive_with_their_own_path_and_read_state_is_per_reader"),
    (
        "B-3.7",
        "gateway::discovering::an_address_with_a_mirrored_slug_takes_the_platform_session_over_once",
    ),
    (
        "B-4.1",
        "gateway::deciding::the_decision_reaches_the_agents_stream_with_every_field_of_the_contract",
    ),
    ("B-5.2", "gateway::mailing::agents_run_out_of_rounds_and_people_do_not"),
    ("B-5.6", "gateway::mailing::a_reply_stays_in_its_session_and_names_its_parent"),
    ("B-6.3", "gateway::mailing::agents_run_out_of_rounds_and_people_do_not"),
    ("B-7.4", "gateway::reading::the_inbox_is_newest_first_and_marks_only_what_it_is_told"),
    ("B-8.2c", "gateway::asking::where_no_person_wrote_nobody_is_asked_and_the_reason_is_told"),
    ("B-8.3", "gateway::asking::asking_again_makes_no_second_mail_and_tells_state_and_decision"),
    ("B-8.4", "gateway::asking::the_owner_of_the_session_is_asked_and_reads_task_and_giver"),
    ("B-8.5", "gateway::asking::asking_costs_no_budget"),
    (
        "B-8.6",
        "gateway::asking::in_a_thread_between_agents_the_person_who_wrote_last_upstream_is_asked",
    ),
    ("B-8.9", "gateway::asking::a_key_of_160_bytes_is_taken_and_one_more_is_refused"),
    ("T-1", "gateway::reading::the_inbox_is_newest_first_and_marks_only_what_it_is_told"),
    ("T-1.1", "gateway::attachments::a_file_goes_up_with_a_mail_and_comes_down_byte_for_byte"),
    ("T-1.2", "gateway::reading::an_inbox_entry_holds_every_field_of_the_event_and_the_text"),
    ("T-1.4", "gateway::reading::read_state_is_per_reader"),
    ("T-2", "gateway::mailing::copies_arrive_with_their_own_path_and_read_state_is_per_reader"),
    ("T-3", "gateway::attachments::a_file_goes_up_with_a_mail_and_comes_down_byte_for_byte"),
    ("T-4", "gateway::attachments::a_file_goes_up_with_a_mail_and_comes_down_byte_for_byte"),
    ("T-5", "gateway::reading::a_forward_quotes_the_mail_takes_its_files_and_leaves_its_session"),
    ("T-8", "gateway::discovering::names_then_paths_then_sessions"),
    (
        "T-9",
        "gateway::discovering::contacts_are_the_others_of_live_sessions_with_addresses_that_deliver",
    ),
    (
        "T-10",
        "gateway::discovering::contacts_are_the_others_of_live_sessions_with_addresses_that_deliver",
    ),
    ("T-11", "gateway::reading::a_thread_goes_over_sessions_and_shows_each_what_it_may_see"),
    ("T-12", "gateway::reading::a_mail_is_shown_with_participants_and_not_marked"),
    (
        "T-13",
        "gateway::sessions::a_proposal_waits_for_a_person_and_a_rejected_one_is_not_offered_again",
    ),
    (
        "T-13.4",
        "gateway::sessions::a_proposal_waits_for_a_person_and_a_rejected_one_is_not_offered_again",
    ),
    ("D-5.s", "gateway::sessions::a_name_that_a_person_chose_stays"),
    (
        "D-7.2",
        "gateway::streams::a_reconnect_gets_what_it_missed_also_over_a_restart_and_ids_only_grow",
    ),
    ("W-1", "gateway::decoding::unknown_routes_and_methods_are_told_as_json"),
    ("W-2", "gateway::decoding::every_route_but_the_heartbeat_refuses_unknown_and_mistyped_fields"),
    (
        "W-3",
        "gateway::discovering::the_model_range_comes_back_with_the_heartbeat_and_only_an_administrator_sets_it",
    ),
    ("W-4", "gateway::mailing::a_mail_to_new_opens_a_session_and_arrives_with_every_field"),
    ("W-5", "gateway::mailing::a_reply_stays_in_its_session_and_names_its_parent"),
    ("W-5.2", "gateway::mailing::relay_keys_are_bounded_and_the_oldest_go_first"),
    (
        "W-5.e",
        "gateway::decoding::every_route_but_the_heartbeat_refuses_unknown_and_mistyped_fields",
    ),
    ("W-6", "gateway::asking::without_a_session_the_owner_of_the_key_is_asked"),
    ("W-7", "gateway::sessions::the_platform_names_a_session_with_numbers_on_collision"),
    ("W-7.1", "gateway::sessions::placeholders_and_leaked_titles_are_not_written_back"),
    ("W-7.3", "gateway::mailing::a_mail_to_new_opens_a_session_and_arrives_with_every_field"),
    ("W-8", "gateway::attachments::a_full_size_file_passes_without_being_held_in_memory"),
    ("W-9.401", "gateway::streams::a_revoked_key_ends_its_streams_and_gets_401"),
    ("W-9.403", "gateway::mailing::agents_run_out_of_rounds_and_people_do_not"),
    ("W-9.404", "gateway::mailing::an_alias_that_leads_nowhere_is_404_and_nothing_is_made"),
    ("W-9.413", "gateway::attachments::the_limit_is_inclusive_and_413_above"),
    (
        "W-9.429",
        "gateway::mailing::an_agent_opens_twenty_sessions_an_hour_and_is_told_when_to_come_back",
    ),
    (
        "W-strict",
        "gateway::decoding::every_route_but_the_heartbeat_refuses_unknown_and_mistyped_fields",
    ),
    ("N-13", "gateway::asking::the_agent_cannot_name_its_decider"),
    ("L-1", "gateway::sessions::archiving_ends_requests_and_addresses_and_everybody_hears_of_it"),
    ("7.2c", "gateway::discovering::an_agent_is_online_for_thirty_seconds_after_its_heartbeat"),
    ("7.2d", "gateway::streams::a_decision_taken_while_nobody_listened_is_replayed"),
    ("7.3b", "gateway::sessions::the_platform_names_a_session_with_numbers_on_collision"),
    ("7.3d", "gateway::mailing::an_alias_that_leads_nowhere_is_404_and_nothing_is_made"),
    (
        "7.3e",
        "gateway::discovering::an_address_with_a_mirrored_slug_takes_the_platform_session_over_once",
    ),
    (
        "7.3i",
        "gateway::sessions::a_proposal_waits_for_a_person_and_a_rejected_one_is_not_offered_again",
    ),
    ("7.6a", "gateway::asking::asking_costs_no_budget"),
    ("7.6c", "gateway::asking::asking_again_makes_no_second_mail_and_tells_state_and_decision"),
    ("7.6d", "gateway::asking::where_no_person_wrote_nobody_is_asked_and_the_reason_is_told"),
    ("7.6g", "gateway::asking::a_key_of_160_bytes_is_taken_and_one_more_is_refused"),
    ("7.7c", "gateway::discovering::an_absent_list_keeps_the_mirror_and_an_empty_one_clears_it"),
    ("7.7d", "gateway::discovering::an_absent_list_keeps_the_mirror_and_an_empty_one_clears_it"),
    ("7.8", "gateway::operating::the_wire_demo_tells_every_step_and_each_answer_is_right"),
    ("9.9", "gateway::sessions::an_administrator_registers_keys_by_key_token_only"),
    ("9.18", "gateway::asking::a_plan_session_asks_nobody"),
];

/// The mail server's part of each row: clause, test.
const MAIL: [(&str, &str); 50] = [
    ("I-2", "mcp_gateway::a_refusal_is_told_with_its_reason_and_not_repeated"),
    ("B-1.1", "mcp_gateway::without_any_key_one_is_made_stored_privately_and_printed_once"),
    (
        "B-1.1",
        "mcp_gateway::the_environments_key_goes_before_the_file_and_the_file_before_the_secret",
    ),
    ("B-1.2", "mcp_gateway::the_first_call_registers_and_a_heartbeat_follows_at_once"),
    ("B-1.3", "mcp_gateway::the_first_call_registers_and_a_heartbeat_follows_at_once"),
    ("B-2.1", "mcp_gateway::a_gateway_that_fails_at_registering_costs_no_word_and_no_call"),
    ("B-2.5", "mcp_gateway::a_gateway_that_fails_at_registering_costs_no_word_and_no_call"),
    ("B-2.6", "mcp_gateway::the_first_call_registers_and_a_heartbeat_follows_at_once"),
    ("B-2.U", "mcp_gateway::a_field_that_the_gateway_does_not_know_is_left_out_from_then_on"),
    ("T-1", "mcp_real::the_inbox_marks_exactly_what_it_lists_and_all_marks_nothing"),
    ("T-1.1", "mcp::golden::reading"),
    ("T-1.2", "mcp::golden::reading"),
    ("T-1.3", "mcp_real::the_inbox_marks_exactly_what_it_lists_and_all_marks_nothing"),
    ("T-1.d", "mcp_gateway::the_first_call_registers_and_a_heartbeat_follows_at_once"),
    (
        "T-2",
        "mcp_real::an_answer_joins_the_session_with_file_and_proposal_and_the_text_stays_clean",
    ),
    ("T-3", "mcp_files::twenty_five_megabytes_go_up_and_come_down_bit_for_bit_in_little_memory"),
    ("T-3/4n", "mcp::golden::the_list_and_the_guide"),
    ("T-4", "mcp_files::a_file_goes_up_as_one_part_and_its_id_comes_back"),
    ("T-5", "mcp_real::addresses_are_found_step_by_step_and_deliver"),
    ("T-6", "mcp_gateway::a_stored_key_never_goes_to_another_host_on_the_models_word"),
    ("T-7", "mcp::golden::the_list_and_the_guide"),
    ("T-8", "mcp_real::addresses_are_found_step_by_step_and_deliver"),
    ("T-9", "mcp_real::addresses_are_found_step_by_step_and_deliver"),
    ("T-10", "mcp_real::addresses_are_found_step_by_step_and_deliver"),
    (
        "T-11",
        "mcp_real::an_answer_joins_the_session_with_file_and_proposal_and_the_text_stays_clean",
    ),
    (
        "T-12",
        "mcp_real::an_answer_joins_the_session_with_file_and_proposal_and_the_text_stays_clean",
    ),
    (
        "T-13",
        "mcp_real::an_answer_joins_the_session_with_file_and_proposal_and_the_text_stays_clean",
    ),
    ("T-13.1", "mcp::scripts_keep_every_law_of_the_arguments"),
    ("T-13.3", "mcp::golden::sending"),
    (
        "T-13.4",
        "mcp_real::an_answer_joins_the_session_with_file_and_proposal_and_the_text_stays_clean",
    ),
    ("T-13.5", "mcp::golden::sending"),
    ("T-names", "mcp::golden::the_list_and_the_guide"),
    ("D-7.1", "mcp_gateway::a_gateway_that_fails_at_registering_costs_no_word_and_no_call"),
    ("D-7.3", "mcp_gateway::only_what_changes_nothing_is_tried_again_and_only_so_often"),
    ("D-7.4", "mcp_process::nothing_happens_at_start"),
    ("W-5", "mcp_real::odd_texts_come_through_as_they_are"),
    ("W-5.1", "mcp::scripts_keep_every_law_of_the_arguments"),
    ("W-5.3", "mcp::scripts_keep_every_law_of_the_arguments"),
    ("W-8", "mcp_files::a_file_goes_up_as_one_part_and_its_id_comes_back"),
    ("W-9.400", "mcp_gateway::a_refusal_is_told_with_its_reason_and_not_repeated"),
    ("W-9.401", "mcp_gateway::a_key_that_is_refused_is_said_once_and_stops_the_heartbeats"),
    ("W-9.403", "mcp_gateway::a_refusal_is_told_with_its_reason_and_not_repeated"),
    ("W-9.404", "mcp_real::a_wrong_alias_is_told_and_opens_nothing"),
    ("W-9.413", "mcp_gateway::a_refusal_is_told_with_its_reason_and_not_repeated"),
    ("W-9.429", "mcp_gateway::a_refusal_is_told_with_its_reason_and_not_repeated"),
    ("W-9.5xx", "mcp_gateway::only_what_changes_nothing_is_tried_again_and_only_so_often"),
    ("N-1", "mcp::golden::the_list_and_the_guide"),
    ("N-5", "mcp::scripts_keep_every_law_of_the_arguments"),
    ("N-7", "mcp_gateway::the_first_call_registers_and_a_heartbeat_follows_at_once"),
    ("N-8", "mcp_gateway::a_refusal_is_told_with_its_reason_and_not_repeated"),
];

#[test]
fn every_test_of_the_table_exists() {
    let exe = std::env::current_exe().unwrap();
    let out = std::process::Command::new(exe).arg("--list").output().unwrap();
    let list = String::from_utf8(out.stdout).unwrap();
    let tests: Vec<_> = list.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    for (row, test) in GATEWAY.into_iter().chain(MAIL) {
        assert!(tests.contains(&test), "{row} names {test}, which does not exist");
    }
}
