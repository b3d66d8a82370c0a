;; EASY backfilling as a policy module of powersweep, in the text form of WebAssembly.
;;
;; The first waiting job that does not fit gets a reservation: the first instant at which enough procs are free by the
;; estimated ends. A job behind it starts if it fits and either ends by then or leaves the reservation its procs.
;;
;; Loops go over addresses of records: a waiting job has 32 bytes, a release 16.
(module
  (memory (export "memory") 1)

  ;; Room for the input: the memory from address 0 on, with as many pages as it takes.
  (func (export "powersweep_v1_input") (param $bytes i32) (result i32)
    (local $pages i32)
    (local.set $pages (i32.sub
      (i32.add (i32.shr_u (local.get $bytes) (i32.const 16)) (i32.const 1))
      (memory.size)))
    (if (i32.gt_s (local.get $pages) (i32.const 0))
      (then (drop (memory.grow (local.get $pages)))))
    (i32.const 0))

  ;; The least estimated end after $instant of the jobs from $first to $head, which have started in this pass.
  (func $next_end (param $first i32) (param $head i32) (param $now f64) (param $instant f64) (result f64)
    (local $next f64) (local $end f64)
    (local.set $next (f64.const inf))
    (block $all
      (loop $jobs
        (br_if $all (i32.eq (local.get $first) (local.get $head)))
        (local.set $end (f64.add (local.get $now) (f64.load offset=8 (local.get $first))))
        (if (i32.and (f64.gt (local.get $end) (local.get $instant)) (f64.lt (local.get $end) (local.get $next)))
          (then (local.set $next (local.get $end))))
        (local.set $first (i32.add (local.get $first) (i32.const 32)))
        (br $jobs)))
    (local.get $next))

  ;; Procs of those of these jobs that end at $instant.
  (func $procs_at (param $first i32) (param $head i32) (param $now f64) (param $instant f64) (result i32)
    (local $procs i32)
    (block $all
      (loop $jobs
        (br_if $all (i32.eq (local.get $first) (local.get $head)))
        (if (f64.eq (f64.add (local.get $now) (f64.load offset=8 (local.get $first))) (local.get $instant))
          (then (local.set $procs (i32.add (local.get $procs) (i32.load offset=16 (local.get $first))))))
        (local.set $first (i32.add (local.get $first) (i32.const 32)))
        (br $jobs)))
    (local.get $procs))

  ;; The reservation of the job at the address $head, which needs more procs than are free: its instant, and the procs that it
  ;; leaves free. The jobs from $first to $head have started in this pass.
  (func $reservation (param $input i32) (param $first i32) (param $head i32) (param $free i32) (result f64 i32)
    (local $need i32) (local $release i32) (local $last i32) (local $now f64) (local $instant f64) (local $end f64)
    (local.set $now (f64.load (local.get $input)))
    (local.set $need (i32.load offset=16 (local.get $head)))
    (local.set $release (i32.add (local.get $input) (i32.load offset=28 (local.get $input))))
    (local.set $last (i32.add (local.get $release) (i32.shl (i32.load offset=20 (local.get $input)) (i32.const 4))))
    (local.set $end (call $next_end (local.get $first) (local.get $head) (local.get $now) (f64.const -inf)))
    (block $enough
      (loop $instants
        ;; The next release, unless a job of this pass ends before.
        (if (i32.ne (local.get $release) (local.get $last))
          (then
            (local.set $instant (f64.load (local.get $release)))
            (if (f64.le (local.get $instant) (local.get $end))
              (then
                (local.set $free (i32.add (local.get $free) (i32.load offset=8 (local.get $release))))
                (local.set $release (i32.add (local.get $release) (i32.const 16)))
                (br_if $instants (i32.lt_u (local.get $free) (local.get $need)))
                (br $enough)))))
        (if (f64.eq (local.get $end) (f64.const inf)) (then (unreachable)))
        (local.set $instant (local.get $end))
        (local.set $free (i32.add (local.get $free)
          (call $procs_at (local.get $first) (local.get $head) (local.get $now) (local.get $instant))))
        (local.set $end (call $next_end (local.get $first) (local.get $head) (local.get $now) (local.get $instant)))
        (br_if $instants (i32.lt_u (local.get $free) (local.get $need)))))
    ;; All other procs that become free at this instant.
    (block $none
      (loop $releases
        (br_if $none (i32.eq (local.get $release) (local.get $last)))
        (br_if $none (f64.ne (f64.load (local.get $release)) (local.get $instant)))
        (local.set $free (i32.add (local.get $free) (i32.load offset=8 (local.get $release))))
        (local.set $release (i32.add (local.get $release) (i32.const 16)))
        (br $releases)))
    (if (f64.eq (local.get $end) (local.get $instant))
      (then (local.set $free (i32.add (local.get $free)
        (call $procs_at (local.get $first) (local.get $head) (local.get $now) (local.get $instant))))))
    (local.get $instant)
    (i32.sub (local.get $free) (local.get $need)))

  (func (export "powersweep_v1_schedule") (param $input i32) (result i32)
    (local $first i32)     ;; address of the first waiting job
    (local $end i32)       ;; address behind the last one
    (local $job i32)       ;; address of a waiting job
    (local $procs i32)     ;; its procs
    (local $free i32)      ;; procs that are free
    (local $answer i32)    ;; address of the answer
    (local $next i32)      ;; address of its next number
    (local $instant f64)   ;; instant of the reservation
    (local $extra i32)     ;; procs that the reservation leaves free
    (local.set $first (i32.add (local.get $input) (i32.load offset=24 (local.get $input))))
    (local.set $end (i32.add (local.get $first) (i32.shl (i32.load offset=16 (local.get $input)) (i32.const 5))))
    (local.set $answer (i32.add (local.get $input) (i32.load offset=32 (local.get $input))))
    (local.set $free (i32.load offset=12 (local.get $input)))
    (local.set $job (local.get $first))
    (local.set $next (local.get $answer))
    (block $done
      ;; Jobs start in order until one does not fit.
      (block $blocked
        (loop $heads
          (br_if $done (i32.eq (local.get $job) (local.get $end)))
          (local.set $procs (i32.load offset=16 (local.get $job)))
          (br_if $blocked (i32.gt_u (local.get $procs) (local.get $free)))
          (local.set $free (i32.sub (local.get $free) (local.get $procs)))
          (i32.store (local.get $next) (i32.shr_u (i32.sub (local.get $job) (local.get $first)) (i32.const 5)))
          (local.set $next (i32.add (local.get $next) (i32.const 4)))
          (local.set $job (i32.add (local.get $job) (i32.const 32)))
          (br $heads)))
      (br_if $done (i32.eqz (local.get $free)))
      (call $reservation (local.get $input) (local.get $first) (local.get $job) (local.get $free))
      (local.set $extra)
      (local.set $instant)
      ;; Jobs behind it overtake.
      (loop $candidates
        (local.set $job (i32.add (local.get $job) (i32.const 32)))
        (br_if $done (i32.eq (local.get $job) (local.get $end)))
        (local.set $procs (i32.load offset=16 (local.get $job)))
        (br_if $candidates (i32.gt_u (local.get $procs) (local.get $free)))
        (if (f64.gt
              (f64.add (f64.load (local.get $input)) (f64.load offset=8 (local.get $job)))
              (local.get $instant))
          (then
            (br_if $candidates (i32.gt_u (local.get $procs) (local.get $extra)))
            (local.set $extra (i32.sub (local.get $extra) (local.get $procs)))))
        (local.set $free (i32.sub (local.get $free) (local.get $procs)))
        (i32.store (local.get $next) (i32.shr_u (i32.sub (local.get $job) (local.get $first)) (i32.const 5)))
        (local.set $next (i32.add (local.get $next) (i32.const 4)))
        (br_if $candidates (local.get $free))))
    (i32.shr_u (i32.sub (local.get $next) (local.get $answer)) (i32.const 2))))
