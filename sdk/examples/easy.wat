;; EASY backfilling as a policy module of powersweep, in the text form of WebAssembly.
;;
;; The first waiting job that does not fit gets a reservation: the first instant at which enough procs are free by the
;; estimated ends. A job behind it starts if it fits and either ends by then or leaves the reservation its procs.
(module
  (memory (export "memory") 1)

  (global $input (mut i32) (i32.const 0))
  (global $waiting (mut i32) (i32.const 0))   ;; address of the first waiting job
  (global $answer (mut i32) (i32.const 0))    ;; address of the answer
  (global $starts (mut i32) (i32.const 0))    ;; number of jobs that start
  (global $free (mut i32) (i32.const 0))
  (global $shadow (mut f64) (f64.const 0))    ;; instant of the reservation
  (global $extra (mut i32) (i32.const 0))     ;; procs that the reservation leaves free

  ;; Room for the input: the memory from address 0 on, with as many pages as it takes.
  (func (export "powersweep_v1_input") (param $bytes i32) (result i32)
    (local $pages i32)
    (local.set $pages (i32.sub
      (i32.add (i32.shr_u (local.get $bytes) (i32.const 16)) (i32.const 1))
      (memory.size)))
    (if (i32.gt_s (local.get $pages) (i32.const 0))
      (then (drop (memory.grow (local.get $pages)))))
    (i32.const 0))

  ;; A number of the header.
  (func $header (param $at i32) (result i32)
    (i32.load (i32.add (global.get $input) (local.get $at))))

  ;; Address of a waiting job: records of 32 bytes.
  (func $job (param $at i32) (result i32)
    (i32.add (global.get $waiting) (i32.shl (local.get $at) (i32.const 5))))

  (func $procs (param $at i32) (result i32)
    (i32.load offset=16 (call $job (local.get $at))))

  ;; Estimated end of a waiting job that starts now.
  (func $end (param $at i32) (result f64)
    (f64.add (f64.load (global.get $input)) (f64.load offset=8 (call $job (local.get $at)))))

  (func $start (param $at i32)
    (i32.store
      (i32.add (global.get $answer) (i32.shl (global.get $starts) (i32.const 2)))
      (local.get $at))
    (global.set $starts (i32.add (global.get $starts) (i32.const 1)))
    (global.set $free (i32.sub (global.get $free) (call $procs (local.get $at)))))

  ;; Finds the reservation of a job that needs more procs than are free: takes one instant of releases after the other,
  ;; of running jobs and of the jobs that this pass has started.
  (func $reserve (param $need i32)
    (local $available i32) (local $at i32) (local $count i32) (local $place i32)
    (local $before f64) (local $next f64) (local $end f64)
    (local.set $available (global.get $free))
    (local.set $before (f64.const -inf))
    (loop $instants
      ;; The next instant: the least end after `before`. The releases are in order.
      (local.set $next (f64.const inf))
      (local.set $place (i32.add (global.get $input) (call $header (i32.const 28))))
      (local.set $count (call $header (i32.const 20)))
      (block $found
        (loop $releases
          (br_if $found (i32.eqz (local.get $count)))
          (if (f64.gt (f64.load (local.get $place)) (local.get $before))
            (then (local.set $next (f64.load (local.get $place))) (br $found)))
          (local.set $place (i32.add (local.get $place) (i32.const 16)))
          (local.set $count (i32.sub (local.get $count) (i32.const 1)))
          (br $releases)))
      (local.set $at (i32.const 0))
      (block $all
        (loop $started
          (br_if $all (i32.ge_u (local.get $at) (global.get $starts)))
          (local.set $end (call $end (local.get $at)))
          (if (i32.and (f64.gt (local.get $end) (local.get $before)) (f64.lt (local.get $end) (local.get $next)))
            (then (local.set $next (local.get $end))))
          (local.set $at (i32.add (local.get $at) (i32.const 1)))
          (br $started)))
      (if (f64.eq (local.get $next) (f64.const inf)) (then (unreachable)))
      ;; All procs that become free at this instant.
      (block $none
        (loop $same
          (br_if $none (i32.eqz (local.get $count)))
          (br_if $none (f64.ne (f64.load (local.get $place)) (local.get $next)))
          (local.set $available (i32.add (local.get $available) (i32.load offset=8 (local.get $place))))
          (local.set $place (i32.add (local.get $place) (i32.const 16)))
          (local.set $count (i32.sub (local.get $count) (i32.const 1)))
          (br $same)))
      (local.set $at (i32.const 0))
      (block $all
        (loop $started
          (br_if $all (i32.ge_u (local.get $at) (global.get $starts)))
          (if (f64.eq (call $end (local.get $at)) (local.get $next))
            (then (local.set $available (i32.add (local.get $available) (call $procs (local.get $at))))))
          (local.set $at (i32.add (local.get $at) (i32.const 1)))
          (br $started)))
      (local.set $before (local.get $next))
      (br_if $instants (i32.lt_u (local.get $available) (local.get $need))))
    (global.set $shadow (local.get $before))
    (global.set $extra (i32.sub (local.get $available) (local.get $need))))

  (func (export "powersweep_v1_schedule") (param $address i32) (result i32)
    (local $at i32) (local $count i32) (local $late i32)
    (global.set $input (local.get $address))
    (global.set $waiting (i32.add (local.get $address) (call $header (i32.const 24))))
    (global.set $answer (i32.add (local.get $address) (call $header (i32.const 32))))
    (global.set $free (call $header (i32.const 12)))
    (local.set $count (call $header (i32.const 16)))
    ;; Jobs start in order until one does not fit.
    (block $head
      (loop $heads
        (br_if $head (i32.ge_u (local.get $at) (local.get $count)))
        (br_if $head (i32.gt_u (call $procs (local.get $at)) (global.get $free)))
        (call $start (local.get $at))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $heads)))
    (if (i32.ge_u (local.get $at) (local.get $count)) (then (return (global.get $starts))))
    (call $reserve (call $procs (local.get $at)))
    ;; Jobs behind it overtake.
    (block $done
      (loop $candidates
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br_if $done (i32.ge_u (local.get $at) (local.get $count)))
        (br_if $candidates (i32.gt_u (call $procs (local.get $at)) (global.get $free)))
        (local.set $late (f64.gt (call $end (local.get $at)) (global.get $shadow)))
        (if (local.get $late)
          (then
            (br_if $candidates (i32.gt_u (call $procs (local.get $at)) (global.get $extra)))
            (global.set $extra (i32.sub (global.get $extra) (call $procs (local.get $at))))))
        (call $start (local.get $at))
        (br $candidates)))
    (global.get $starts)))
