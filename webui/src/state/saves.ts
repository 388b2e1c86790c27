// Files that the server makes and the page offers for download: exports, reports, rows of a statement.
// Several arrive at the same time, each with its progress, and each can be cancelled.
import { signal, type ReadonlySignal, type Signal } from '@preact/signals';
import { formatBytes } from '../format';
import { errorText, type Api, type ExportRows, type FileRequest } from '../net/api';
import type { Toasts } from './toasts';

export interface Save {
  readonly id: number;
  readonly name: string; // what it is
  readonly received: number; // bytes
  readonly all: number | null; // bytes; null: the server does not know yet
  readonly stop: () => void;
}

// Offers a file of the page to the user.
export type Offer = (name: string, file: Blob) => void;

export class Saves {
  readonly list: ReadonlySignal<readonly Save[]>;
  readonly rows: Signal<ExportRows> = signal({ perHead: false, perToken: false }); // of the next export
  private readonly current = signal<readonly Save[]>([]);
  private last = 0;

  constructor(
    private readonly api: Pick<Api, 'file'>,
    private readonly toasts: Toasts,
    private readonly offer: Offer,
  ) {
    this.list = this.current;
  }

  // `fileName`: without one of the server. An incomplete file is not offered.
  async save(name: string, fileName: string, request: FileRequest): Promise<void> {
    const control = new AbortController();
    this.last += 1;
    const id = this.last;
    const stop = (): void => {
      control.abort();
    };
    this.current.value = [...this.current.peek(), { id, name, received: 0, all: null, stop }];
    const file = await this.api.file(
      request,
      (received, all) => {
        this.current.value = this.current
          .peek()
          .map((one) => (one.id === id ? { ...one, received, all } : one));
      },
      control.signal,
    );
    this.current.value = this.current.peek().filter((one) => one.id !== id);
    if (file.ok) {
      const { name: own, bytes } = file.value;
      this.offer(own ?? fileName, bytes);
      this.toasts.done(`Saved ${own ?? fileName}, ${formatBytes(bytes.size)}.`);
    } else if (file.error.kind !== 'aborted') {
      this.toasts.error(`${name} was not saved: ${errorText(file.error)}`);
    }
  }
}
