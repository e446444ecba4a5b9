// Torture: real servers behind proxies, which are killed, frozen and cut off, and given bad disks, while
// clients log what they are told; then the history is checked. scripts/torture builds and runs it.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sluice.torture/history"
	"sluice.torture/jsonl"
)

// nodesMin is the fewest nodes of a cluster that goes on without one, and nodesMax the most of any.
const nodesMin, nodesMax = 3, 5

// drawnMax is the most messages without an order of their calls that are drawn.
const drawnMax = 3

func main() {
	if len(os.Args) == 3 && os.Args[1] == "check" {
		exit(checkAgain(os.Args[2]))
	}
	minutes := flag.Float64("minutes", 1, "how long faults happen; the check follows")
	nodes := flag.Int("nodes", nodesMin, "number of servers: 1, or those of a cluster")
	seed := flag.Int64("seed", time.Now().UnixNano()%1_000_000, "of the faults and of the clients' choices")
	program := flag.String("sluice", "", "the server's binary")
	folder := flag.String("folder", "", "where history, logs and data go; it is emptied before")
	count := flag.Int("histories", 0, "make so many short histories of locks and documents instead")
	planted := flag.String("plant", "", "with --histories: a fault for the servers, stale-read or lost-fence, "+
		"because of which one of the histories must not be accepted")
	mounts := flag.Bool("mounts", false, "give each node a disk that can be full, in the process's own namespace")
	flag.Parse()
	if flag.NArg() > 0 || *nodes != 1 && (*nodes < nodesMin || *nodes > nodesMax) {
		exit([]string{fmt.Sprintf("expected flags alone, and --nodes 1, or %d to %d", nodesMin, nodesMax)})
	}
	if spoils[*planted] == nil && *planted != "" {
		exit([]string{"expected --plant stale-read, or lost-fence"})
	}
	if *count > 0 {
		fmt.Printf("torture: %d nodes, %d histories, seed %d, in %s\n", *nodes, *count, *seed, *folder)
		exit(short(*program, *folder, *seed, *nodes, *count, *planted))
	}
	length := time.Duration(*minutes * float64(time.Minute))
	fmt.Printf("torture: %d nodes, %v, seed %d, history in %s\n", *nodes, length, *seed, *folder)
	exit(torture(*program, *folder, *seed, *nodes, length, *mounts))
}

// exit tells the problems; there should be none.
func exit(problems []string) {
	for _, problem := range problems {
		fmt.Fprintln(os.Stderr, "torture: "+problem)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
	os.Exit(0)
}

// torture runs, checks and reports; the problems.
func torture(program, folder string, seed int64, nodes int, length time.Duration, mounts bool) []string {
	faults, leftOut := possible(nodes, mounts)
	for _, fault := range leftOut {
		if os.Getenv("CI") != "" {
			return []string{"with CI set, nothing may be left out: " + fault}
		}
		fmt.Println("left out:", fault)
	}
	if err := empty(folder); err != nil {
		return []string{err.Error()}
	}
	run, err := newRun(program, folder, seed, nodes, length, mounts)
	if err != nil {
		return []string{err.Error()}
	}
	var problems []string
	if err := run.torture(faults); err != nil {
		problems = append(problems, err.Error())
	}
	run.report()
	problems = append(problems, check(folder)...)
	problems = append(problems, checkKeys(folder)...)
	kept := ""
	if len(problems) > 0 {
		kept = filepath.Join(folder, "kept")
	}
	if err := run.stop(kept); err != nil {
		problems = append(problems, err.Error())
	}
	return problems
}

// short makes short histories and checks each, with or without a planted fault; the problems.
func short(program, folder string, seed int64, nodes, count int, planted string) []string {
	if err := empty(folder); err != nil {
		return []string{err.Error()}
	}
	run, err := newRun(program, folder, seed, nodes, historyLength, false)
	if err != nil {
		return []string{err.Error()}
	}
	problems := run.histories(folder, count, quick(nodes), spoils[planted])
	run.reportFaults()
	if planted != "" {
		problems = expected(problems, planted)
	}
	kept := ""
	if len(problems) > 0 {
		kept = filepath.Join(folder, "kept")
	}
	if err := run.stop(kept); err != nil {
		problems = append(problems, err.Error())
	}
	return problems
}

// expected turns the problems of histories with a planted fault around: there have to be some.
func expected(problems []string, planted string) []string {
	isFound := func(problem string) bool { return strings.Contains(problem, "have no order") }
	if !slices.ContainsFunc(problems, isFound) {
		return append(problems, "all histories have an order, although the servers have a fault: "+planted)
	}
	for _, problem := range problems {
		fmt.Println("found:", problem)
	}
	return nil
}

func empty(folder string) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	return os.MkdirAll(folder, 0o755)
}

// checkAgain checks what histories there are in a folder; the problems.
func checkAgain(folder string) []string {
	problems := checkKeys(folder)
	if _, err := os.Stat(filepath.Join(folder, messagesFile)); err == nil {
		problems = append(check(folder), problems...)
	}
	return problems
}

// check reads the history of messages in a folder, and draws those whose calls have no order; the problems.
func check(folder string) []string {
	since := time.Now()
	records, err := jsonl.Read[history.Record](filepath.Join(folder, messagesFile))
	if err != nil {
		return []string{err.Error()}
	}
	problems := history.Problems(records)
	unordered := history.WithoutOrder(records)
	for _, key := range unordered[:min(len(unordered), drawnMax)] {
		page := filepath.Join(folder, key+".html")
		if err := history.Draw(records, key, page); err != nil {
			problems = append(problems, err.Error())
		}
		fmt.Println("drawn:", page)
	}
	if len(problems) == 0 {
		for _, missed := range history.Missed(records) {
			problems = append(problems, "not found by the checks, although it was planted: "+missed)
		}
		fmt.Printf("checked in %.1f s: %d records are as they should be, and %d planted faults were found\n",
			time.Since(since).Seconds(), len(records), len(history.Plants))
	}
	return problems
}

// report tells what the run has covered.
func (run *run) report() {
	total := 0
	for _, count := range run.recorder.counts {
		total += count
	}
	length := time.Since(run.recorder.begin).Seconds()
	fmt.Printf("%d operations in %.0f s, %.0f per second:%s\n", total, length, float64(total)/length,
		counts(run.recorder.counts))
	run.reportFaults()
}

func (run *run) reportFaults() {
	fmt.Printf("faults:%s\n", counts(run.struck))
	fmt.Printf("the longest time from the end of a fault to calls that succeeded: %v\n", run.longest)
}

func counts(counts map[string]int) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if name != "" {
			fmt.Fprintf(&text, "\n  %6d %s", counts[name], name)
		}
	}
	return text.String()
}
