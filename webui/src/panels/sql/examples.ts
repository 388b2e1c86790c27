// Statements that answer common questions.

export interface SqlExample {
  readonly question: string;
  readonly sql: string;
  readonly only?: 'experts';
}

export const NAN_SQL = 'SELECT step, op, operation_type, tensor_name, op_layer_id, output_nan, output_inf\nFROM op\nWHERE output_nan > 0 OR output_inf > 0\nORDER BY step, op\nLIMIT 100'; // prettier-ignore

export const EXAMPLES: readonly SqlExample[] = [
  {
    question: 'What did each step cost?',
    sql: 'SELECT step, phase, token_count, duration_ns, bytes_read, verdict\nFROM step\nORDER BY step',
  },
  {
    question: 'Time of each layer, all generated steps',
    sql: "SELECT op_layer_id, sum(duration_ns) AS time_ns, sum(bytes_read) AS bytes_read\nFROM op_total\nWHERE phase = 'generate'\nGROUP BY op_layer_id\nORDER BY time_ns DESC",
  },
  {
    question: 'Time of each op type, all steps',
    sql: 'SELECT operation_type, duration_ns, executions, bytes_read, bytes_per_s\nFROM op_time\nORDER BY duration_ns DESC',
  },
  {
    question: 'Which tensors are accessed most?',
    sql: 'SELECT tensor_name, memory_source, accesses, size_bytes\nFROM hottest_tensors\nLIMIT 20',
  },
  {
    question: 'Mapped file or other memory?',
    sql: 'SELECT memory, phase, sum(size_bytes) AS size_bytes, sum(accesses) AS accesses\nFROM access_by_source\nGROUP BY memory, phase',
  },
  {
    question: 'Prompt against generation',
    sql: 'SELECT phase, steps, tokens, duration_ns, bytes_read, bytes_read / tokens AS bytes_per_token\nFROM phase_totals',
  },
  {
    question: 'Bytes by tensor type',
    sql: 'SELECT tensor_type, sum(size_bytes) AS size_bytes\nFROM access_total\nGROUP BY tensor_type\nORDER BY size_bytes DESC',
  },
  {
    question: 'The ops of the selected step',
    sql: 'SELECT op, operation_type, tensor_name, op_layer_id, duration_ns, bytes_read\nFROM op\nWHERE step = :step\nORDER BY op',
  },
  {
    question: 'What the selected layer reads in the selected step',
    sql: 'SELECT op, tensor_name, write, memory_source, size_bytes, file_offset\nFROM access\nWHERE step = :step AND op_layer_id = :layer\nORDER BY op, access, part',
  },
  {
    question: 'Where does the first NaN come from?',
    sql: NAN_SQL,
  },
  {
    question: 'Median and p95 of a generated token',
    sql: "WITH ranked AS (\n  SELECT duration_ns, row_number() OVER (ORDER BY duration_ns) AS rank, count(*) OVER () AS steps\n  FROM step WHERE phase = 'generate' AND timing <> 'learned' AND dropped = 0)\nSELECT 'median' AS value, min(duration_ns) AS duration_ns FROM ranked WHERE rank >= 0.5 * steps\nUNION ALL\nSELECT 'p95', min(duration_ns) FROM ranked WHERE rank >= 0.95 * steps",
  },
  {
    question: 'What the machine did to the slow steps',
    sql: 'SELECT step, duration_ns, verdict, cpu_wait_ns, major_faults, throttled_ns\nFROM step\nORDER BY duration_ns DESC\nLIMIT 20',
  },
  {
    question: 'How often each expert was chosen',
    sql: 'SELECT layer_id, expert_id, tokens, first_choices, mean_score\nFROM expert_use\nORDER BY tokens DESC',
    only: 'experts',
  },
  {
    question: 'Tokens of an expert of the selected layer',
    sql: 'SELECT token_id, expert_id, routing_score,\n  (SELECT text FROM token WHERE token.token_id = expert.token_id) AS text\nFROM expert\nWHERE layer_id = :layer AND expert_id = 3\nORDER BY token_id',
    only: 'experts',
  },
];
