// The program that `tt attach --live` records into the folder of this server.
import { signal, type ReadonlySignal } from '@preact/signals';
import type { Api } from '../../net/api';
import type { RecordedProgram } from '../../net/types';

export interface ShownProgram extends RecordedProgram {
  readonly folder: string; // of its sessions
}

export class Recorded {
  // Null: none. It stays when the server does not answer any more.
  readonly program: ReadonlySignal<ShownProgram | null>;
  private readonly latest = signal<ShownProgram | null>(null);
  private readonly api: Pick<Api, 'server'>;

  constructor(api: Pick<Api, 'server'>) {
    this.api = api;
    this.program = this.latest;
  }

  async refresh(): Promise<void> {
    const server = await this.api.server();
    if (!server.ok) return;
    const { recorded_program: program, data_dir: folder } = server.value;
    const before = this.latest.peek();
    const isSame = program !== null && before?.name === program.name && before.ended === program.ended; // prettier-ignore
    if (!isSame) this.latest.value = program && { ...program, folder };
  }

  // While it runs, it may end.
  async watch(): Promise<void> {
    const program = this.latest.peek();
    if (program !== null && program.ended === null) await this.refresh();
  }
}
